// A sum in memory that all ranks see: numbers are written where the others read them, and do not travel.
// Each rank adds one slice of them, along the tree of OrderedSum. The sum too is one for all ranks.
#pragma once

#include "train/sums/part_sum.h"
#include "train/ranks/ranks.h"
#include "train/ranks/shared_memory.h"

namespace fovea::train {

class SharedSum : public PartSum {
 public:
  // Bytes of each region that such a sum needs.
  static size_t bytes_of(const Addends& addends, const Division& division, const Ranks& ranks);
  // They begin at `first` in each region.
  SharedSum(const Addends& addends, const Division& division, const Ranks& ranks,
            const SharedMemory& memory, size_t first);

  torch::Tensor room() override;
  void start() override {}
  // All ranks have met between start() and combine(), and again between combine() and take().
  void combine(double divisor, const std::string& what) override;
  // In memory that all see: each number may be changed by one rank only.
  torch::Tensor take(const std::string& what) override;

 private:
  // `padded_` numbers in the region of a rank.
  torch::Tensor at(int rank, int64_t place) const;
  torch::Tensor sum() const { return at(0, places_); }

  int64_t size_, padded_, places_;
  torch::ScalarType type_;
  Division division_;
  const Ranks& ranks_;
  const SharedMemory& memory_;
  size_t first_;
};

}  // namespace fovea::train
