// Where nodes of a generated graph look: at papers, or at surveys, which mislead.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "data/formats/graph.h"
#include "systems/gat/model.h"
#include "train/ranks/graph_part.h"

namespace fovea::systems::gat {

// The columns of looks_of().
enum Look : int64_t {
  kHit,      // 1: the neighbour with the most weight is not a survey; 0: it is; -1: no choice
  kWeights,  // how many weights were looked at
  kZeros,    // how many of them are zero
  kLooks
};

struct Surveyed {
  const data::Csr& sees;
  const std::vector<uint8_t>& survey;  // of each node of the whole graph
  const train::GraphPart* part;        // null: `sees` is the whole graph
};

// Of nodes that this process holds: [nodes, kLooks]. Heads count together, the node itself not.
torch::Tensor looks_of(const Layer::Parts& layer, const Surveyed& graph,
                       std::span<const int64_t> nodes);

}  // namespace fovea::systems::gat
