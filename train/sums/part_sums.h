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

// What else than sums a rank needs.
struct RoomOfRank {
  size_t figures = 0;  // at most, that it tells the others at once
  size_t bytes = 0;    // of memory that all see, for whoever asks for it
};

class PartSums {
 public:
  // A sum of each of `addends`. `ranks` null: this process has all parts.
  PartSums(const std::vector<Addends>& addends, const RoomOfRank& room, const Division& division,
           Ranks* ranks);

  PartSum& operator[](size_t sum) { return *sums_[sum]; }
  void clear();
  // In each step all ranks call the first of these, after their parts, and then the second; then sums
  // can be taken. `what` is what a waiting rank is said to wait for.
  // The figures of every rank, one rank after the other.
  std::vector<double> figures_of_all(const std::vector<double>& own, const std::string& what);
  void combine(double divisor, const std::string& what);
  // Why numbers travel although all ranks are on one machine; otherwise empty.
  const std::string& why_they_travel() const { return why_they_travel_; }

  // Whether ranks do this in memory that all see. If so, a rank's bytes there, zero at first, and a wait
  // until all ranks are here.
  bool in_shared_memory() const { return shared_ != nullptr; }
  std::byte* room(int rank) const { return shared_->region(rank) + room_; }
  void meet(const std::string& what) { shared_->meet(what); }

 private:
  Ranks* ranks_;
  std::string why_they_travel_;
  size_t room_ = 0;                       // where a rank's bytes begin in its region
  std::unique_ptr<SharedMemory> shared_;  // null: numbers travel
  std::vector<std::unique_ptr<PartSum>> sums_;
};

}  // namespace fovea::train
