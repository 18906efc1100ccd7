#include "train/sums/ordered_sum.h"

#include <torch/torch.h>

namespace fovea::train {
namespace {

void join(OrderedSum::Node& left, const OrderedSum::Node& right) {
  if (left.sum.defined()) left.sum.add_(right.sum);
  ++left.level;
  left.place /= 2;
}

bool are_siblings(const OrderedSum::Node& left, const OrderedSum::Node& right) {
  return left.level == right.level && left.place % 2 == 0 && left.place + 1 == right.place;
}

}  // namespace

void OrderedSum::add(Node node) {
  nodes_.push_back(std::move(node));
  while (nodes_.size() > 1 && are_siblings(nodes_[nodes_.size() - 2], nodes_.back())) {
    join(nodes_[nodes_.size() - 2], nodes_.back());
    nodes_.pop_back();
  }
}

torch::Tensor OrderedSum::total() {
  while (nodes_.size() > 1) {
    nodes_[nodes_.size() - 2].sum.add_(nodes_.back().sum);
    nodes_.pop_back();
  }
  return nodes_.empty() ? torch::Tensor() : nodes_.front().sum;
}

PartRange parts_of_rank(int64_t parts, int64_t rank, int64_t size) {
  return {parts * rank / size, parts * (rank + 1) / size};
}

std::span<const int64_t> items_of_part(std::span<const int64_t> items, int64_t part,
                                       int64_t parts) {
  const auto count = static_cast<int64_t>(items.size());
  const int64_t first = count * part / parts, end = count * (part + 1) / parts;
  return items.subspan(static_cast<size_t>(first), static_cast<size_t>(end - first));
}

std::vector<OrderedSum::Node> nodes_of(PartRange range) {
  OrderedSum sum;
  for (int64_t part = range.first; part < range.end; ++part) sum.add(part, torch::Tensor());
  return sum.nodes();
}

}  // namespace fovea::train
