// Every head of every layer, and the likeliest words for a [MASK].
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"
#include "systems/bert/answers.h"

namespace fovea::systems::bert {

// The maps of one sequence, by layer and head.
explain::Explanation head_maps(Start& start, const Sequence& sequence, const std::string& title,
                               const std::string& outcome);
// Where each [MASK] looked, and bars of the words it may be.
explain::Explanation fill_bars(Start& start, const Sequence& sequence, const std::string& title);
// The pictures of a line: with [MASK] both, otherwise the maps.
std::vector<explain::Explanation> pictures(Start& start, const Sequence& sequence,
                                           const std::string& title, const std::string& outcome);

}  // namespace fovea::systems::bert
