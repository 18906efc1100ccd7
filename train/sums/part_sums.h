// What the ranks bring together at each step: some figures, and sums of large tensors. On one machine
// they do it in memory that all see, otherwise through c10d.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/sums/part_sum.h"
#include "train/ranks/ranks.h"
#include "train/ranks/shared_memory.h"

namespace fovea::train {

class PartSums {
 public:
  // A sum of each of `addends`, and `figures` figures of a rank. `ranks` null: this process has all parts.
  PartSums(const std::vector<Addends>& addends, size_t figures, const Division& division,
           Ranks* ranks);

  PartSum& operator[](size_t sum) { return *sums_[sum]; }
  void clear();
  // In each step all ranks call the first of these, after their parts, and then the second; then sums
  // can be taken. `what` is what a waiting rank is said to wait for.
  // The figures of every rank, one rank after the other.
  std::vector<double> figures_of_all(const std::vector<double>& own, const std::string& what);
  void combine(const std::string& what);
  // Why numbers travel although all ranks are on one machine; otherwise empty.
  const std::string& why_they_travel() const { return why_they_travel_; }

 private:
  Ranks* ranks_;
  std::string why_they_travel_;
  std::unique_ptr<SharedMemory> shared_;  // null: numbers travel
  std::vector<std::unique_ptr<PartSum>> sums_;
};

}  // namespace fovea::train
