// Which rank holds which rows of a sequence, and whose rows can meet.
#pragma once

#include <torch/custom_class.h>

#include <string>
#include <variant>
#include <vector>

#include "fovea/ranks.h"

namespace fovea::over_ranks {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// The name of what a variant of choices holds, for messages.
template <class Variant>
std::string name_of(const Variant& variant) {
  return std::visit([]<class Kind>(const Kind&) { return std::string(Kind::kName); }, variant);
}

// Rows of a rank that follow each other in the sequence.
struct Rows {
  int64_t first = 0, count = 0;
  Tensor of(const Tensor& tensor) const { return tensor.narrow(2, first, count); }
};

// How far before and after its own position a query can see at most.
struct Reach {
  int64_t before, after;
};

class Plan : public torch::CustomClassHolder {
 public:
  // Called by all ranks: they compare what they were given, and under Documents tell each other their
  // ids.
  Plan(const Tensor& query, const Tensor& key, const Tensor& value, const Structure& structure,
       const ProcessGroup& group, const RankOptions& options);

  const ProcessGroup& group() const { return group_; }
  // Where tensors must be to travel: with their rows, or on the host where the group is Gloo's.
  at::Device carrier() const { return carrier_; }
  int64_t rank() const { return rank_; }
  int64_t ranks() const { return ranks_; }
  int64_t rows() const { return rows_; }
  // The rank `step` places before.
  int64_t before(int64_t step) const { return (rank_ - step + ranks_) % ranks_; }

  // The rows of each rank that travel together: few, so that what is underway takes little memory.
  std::vector<Rows> pieces() const;
  // The position in the whole sequence of the first row of a rank's piece.
  int64_t position(int64_t rank, Rows piece) const;

  // Rows of `queries` that can see a piece of `keys`, and the position of the first one counted from
  // the first of the piece.
  struct Meeting {
    Rows rows;
    int64_t offset;
  };
  std::vector<Meeting> meetings(int64_t queries, int64_t keys, Rows piece) const;

  // The structure between some rows of this rank and a piece of another.
  Structure between(Structure given, Rows own, int64_t keys, Rows piece) const;

 private:
  ProcessGroup group_;
  at::Device carrier_;
  int64_t rank_, ranks_, rows_;
  int64_t stretch_;  // of a rank's rows, which follow each other
  int64_t piece_;
  Layout layout_;
  Reach reach_;
  Tensors key_ids_;  // of each rank's rows, under Documents

  int64_t stretches() const { return layout_ == Layout::kZigzag ? 2 : 1; }
};

}  // namespace fovea::over_ranks
