// What relative positions are tried on: copies, canons, and graphs with labelled edges.
#pragma once

#include <cstdint>
#include <vector>

#include "data/graphs/labelled_graphs.h"
#include "data/music/chorales.h"
#include "data/random.h"

namespace fovea::systems::relative_positions {

// Each voice sings what the voice above it sang so many sixteenths before, a fourth lower.
inline constexpr int64_t kCanonDelay = 8, kCanonInterval = 5;
// From a follower's token back to the one it repeats.
inline constexpr int64_t kCanonDistance = kCanonDelay * data::kVoices + 1;

data::Chorale draw_canon(data::Random& random, int64_t sixteenths);

// From each node an edge of every label goes to another node. The answer is the kind of the node at
// the end of the asked node's edge with the label in question.
data::LabelledGraph draw_graph(data::Random& random);
// The edge whose label is the question, or -1.
int64_t deciding_edge(const data::LabelledGraph& graph);

}  // namespace fovea::systems::relative_positions
