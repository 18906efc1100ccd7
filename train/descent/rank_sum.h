// A sum over the parts of all ranks, which every rank gets, while the ranks compute on. In order: each
// rank brings together one slice of the numbers, adds it along the tree of OrderedSum, and gives it to
// all. That moves as many bytes as a sum in any order does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/descent/ordered_sum.h"
#include "train/ranks/ranks.h"

namespace fovea::train {

// How a batch is divided.
struct Division {
  int64_t parts = 1;
  // Whether sums over ranks keep the order of the parts. Otherwise c10d adds them in the order that is
  // fastest, which depends on the number of ranks.
  bool ordered = true;
};

class RankSum {
 public:
  // `ranks` null: this process has all parts.
  RankSum(int64_t size, const Division& division, Ranks* ranks);

  // Room for the numbers of a part: `size` of them, and what evens out the slices, which is zero.
  torch::Tensor room(const torch::TensorOptions& options) const;
  // Numbers of this rank's next part.
  void add(int64_t part, torch::Tensor numbers) { own_.add(part, std::move(numbers)); }
  // These are called on every rank and for every sum in the same order. Sends what this rank has.
  void start();
  // Waits for the others', adds and sends the own slice; `what` is what the rank is said to wait for.
  void combine(const std::string& what);
  // The sum, and room for the next one.
  torch::Tensor take(const std::string& what);
  // Forgets what was added.
  void clear() { own_.clear(); }

 private:
  int64_t slice() const { return padded_ / ranks_->size(); }
  void start_ordered();

  int64_t size_, padded_;
  Division division_;
  Ranks* ranks_;
  OrderedSum own_;
  torch::Tensor sum_, received_;
  Ranks::Started started_;
};

}  // namespace fovea::train
