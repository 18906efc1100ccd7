// A sum over the parts of a batch, of all ranks, which every rank gets.
#pragma once

#include <cstdint>
#include <string>

#include "train/sums/ordered_sum.h"

namespace fovea::train {

// How a batch is divided.
struct Division {
  int64_t parts = 1;
  // Whether sums over ranks keep the order of the parts. Otherwise c10d adds them in the order that is
  // fastest, which depends on the number of ranks.
  bool ordered = true;
};

// What is added up: so many numbers, of that type and on that device.
struct Addends {
  int64_t count;
  torch::TensorOptions options;
};

class PartSum {
 public:
  PartSum() = default;
  virtual ~PartSum() = default;
  PartSum(const PartSum&) = delete;
  PartSum& operator=(const PartSum&) = delete;

  // Room for the numbers of a part.
  virtual torch::Tensor room() = 0;
  // Addends of this rank's next part, which stand in that room.
  void add(int64_t part, torch::Tensor numbers) { own_.add(part, std::move(numbers)); }
  // These are called on every rank and for every sum in the same order. This rank has added its last part.
  virtual void start() = 0;
  // Waits for the others', adds, and divides by a number; `what` is what the rank is said to wait for.
  virtual void combine(double divisor, const std::string& what) = 0;
  // That quotient, and room for the next sum.
  virtual torch::Tensor take(const std::string& what) = 0;
  // Forgets what was added.
  void clear() { own_.clear(); }

 protected:
  OrderedSum own_;
};

// The slices of a sum are of one size.
inline int64_t rounded_up(int64_t size, int64_t slices) {
  return (size + slices - 1) / slices * slices;
}

// A tensor of one dimension, with any content: one of before that nobody holds any more, if there is one.
// Every step needs the same sizes, and pages that malloc gives back to the kernel after a step and gets
// again must be cleared.
torch::Tensor spare(int64_t size, const torch::TensorOptions& options);

}  // namespace fovea::train
