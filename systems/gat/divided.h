// A graph that is divided among ranks: the part of this rank, and what all ranks find of some nodes.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/formats/graph.h"
#include "train/ranks/graph_part.h"

namespace fovea::systems::gat {

// All ranks call it, with the same graph. `how`: "contiguous" or "edge_cut".
std::shared_ptr<const train::GraphPart> own_part(const data::Csr& sees, const std::string& how,
                                                 train::Ranks& ranks);
// Nodes with their features alone. `graph` then has no features, edges and labels any more, nor
// their memory.
data::CitationGraph taken_out(data::CitationGraph& graph, const std::vector<int64_t>& nodes);

// Those of some nodes that this rank holds, and their places among its nodes.
struct Held {
  std::vector<int64_t> nodes, places;
};
Held held_of(const train::GraphPart& part, const std::vector<int64_t>& nodes);

// What all ranks found of some nodes, while an evaluation runs.
class Judged {
 public:
  // scores [nodes, classes], looks [nodes, kLooks] (undefined: the truth is not known).
  Judged(const std::vector<int64_t>& nodes, torch::Tensor scores, torch::Tensor looks);

  torch::Tensor scores_of(std::span<const int64_t> nodes) const { return rows(scores_, nodes); }
  torch::Tensor looks_of(std::span<const int64_t> nodes) const { return rows(looks_, nodes); }

 private:
  torch::Tensor rows(const torch::Tensor& of_all, std::span<const int64_t> nodes) const;

  std::unordered_map<int64_t, int64_t> place_;  // of a node among those judged
  torch::Tensor scores_, looks_;
};

}  // namespace fovea::systems::gat
