// A sum whose numbers travel through c10d, while the ranks compute on. In order: each rank brings
// together one slice of the numbers, adds it along the tree of OrderedSum, and gives it to all. That
// moves as many bytes as a sum in any order does.
#pragma once

#include "train/sums/part_sum.h"
#include "train/ranks/ranks.h"

namespace fovea::train {

class RankSum : public PartSum {
 public:
  // `ranks` null: this process has all parts.
  RankSum(const Addends& addends, const Division& division, Ranks* ranks);

  // The numbers, and what evens out the slices, which is zero.
  torch::Tensor room() override;
  // Sends what this rank has.
  void start() override;
  // Sends the own slice.
  void combine(double divisor, const std::string& what) override;
  torch::Tensor take(const std::string& what) override;

 private:
  int64_t slice() const { return padded_ / ranks_->size(); }
  void start_ordered();

  int64_t size_, padded_;
  torch::TensorOptions options_;
  Division division_;
  Ranks* ranks_;
  torch::Tensor sum_, received_;
  Ranks::Started started_;
};

}  // namespace fovea::train
