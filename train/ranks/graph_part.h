// The part of a graph that a rank holds: some nodes, and the edges into them. Before each layer it gets
// the features of their neighbours on other ranks.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "data/formats/graph.h"
#include "train/ranks/ranks.h"

namespace fovea::train {

class GraphPart {
 public:
  // Every rank has the whole graph when it calls this, and needs it no longer afterwards. `owners`:
  // the rank of each node.
  GraphPart(const data::Csr& graph, const std::vector<int32_t>& owners, Ranks& ranks);

  // This rank's nodes, by their numbers in the whole graph, ascending.
  const std::vector<int64_t>& nodes() const { return nodes_; }
  // What each of them sees. A column below nodes().size() is one of them; the others are neighbours on
  // other ranks, whose numbers in the whole graph `number_of` says.
  const data::Csr& rows() const { return rows_; }
  int64_t number_of(int64_t column) const;
  int64_t neighbours() const { return static_cast<int64_t>(neighbours_.size()); }
  // The place of a node among nodes(); -1: another rank holds it.
  int64_t place_of(int64_t node) const;

  // These are called by all ranks, in the same order.
  // own [nodes, …] -> [nodes + neighbours, …], with its gradient.
  torch::Tensor with_neighbours(const torch::Tensor& own) const;
  // Rows of some nodes of the whole graph, on every rank; own [nodes, width]. Without a gradient.
  torch::Tensor rows_of(const std::vector<int64_t>& wanted, const torch::Tensor& own) const;
  Ranks& ranks() const { return *plan_->ranks; }

  // What travels between ranks. Gradients go the other way.
  struct Plan {
    Ranks* ranks;
    torch::Tensor sent_rows;  // places of the nodes that others need, one rank after the other
    std::vector<int64_t> sent, received;  // nodes for and of each rank
  };

 private:
  std::vector<int64_t> nodes_, neighbours_;
  data::Csr rows_;
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
};

}  // namespace fovea::train
