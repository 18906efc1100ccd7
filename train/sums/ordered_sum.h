// A sum of parts whose bits do not depend on which rank adds which parts. Parts are added in pairs,
// along a fixed binary tree: ((0 + 1) + (2 + 3)) + … A rank that holds both parts of a pair adds them.
// The rank that collects the sums adds the pairs that are left.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::train {

class OrderedSum {
 public:
  // The sum of parts place · 2^level up to (place + 1) · 2^level.
  struct Node {
    int64_t level = 0, place = 0;
    torch::Tensor sum = {};
  };
  // Nodes come in the order of their parts. A sum is taken over, and may be changed.
  void add(Node node);
  void add(int64_t part, torch::Tensor numbers) { add({0, part, std::move(numbers)}); }
  // The nodes that have no neighbour yet, in order.
  const std::vector<Node>& nodes() const { return nodes_; }
  // All of it, once every part is there: what is left is added from the last to the first.
  torch::Tensor total();
  void clear() { nodes_.clear(); }

 private:
  std::vector<Node> nodes_;
};

// Parts from `first` up to `end`.
struct PartRange {
  int64_t first = 0, end = 0;
  int64_t count() const { return end - first; }
  friend bool operator==(const PartRange&, const PartRange&) = default;
};
// Which of `parts` parts rank `rank` of `size` computes.
PartRange parts_of_rank(int64_t parts, int64_t rank, int64_t size);
// The items of one part of a batch; neighbours differ by one item at most. Empty where there are more
// parts than items.
std::span<const int64_t> items_of_part(std::span<const int64_t> items, int64_t part, int64_t parts);
// Level and place of the nodes that a range of parts adds up to.
std::vector<OrderedSum::Node> nodes_of(PartRange range);

}  // namespace fovea::train
