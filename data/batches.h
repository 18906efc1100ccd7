// Which items form a batch: shuffled, and of similar length if lengths are given.
#pragma once

#include <cstdint>
#include <vector>

namespace fovea::data {

struct BatchPlan {
  int64_t items = 32;  // most items in a batch
  int64_t tokens =
      0;  // > 0: largest total length of a batch, instead of `items`; a longer item is a batch alone
  uint64_t seed = 0;  // of this epoch
};

// Batches of positions 0 … items - 1, each position once. With lengths: items are shuffled, sorted
// by length within pools of a hundred batches, and divided into batches, which are shuffled. So the
// items of a batch have similar lengths, and epochs differ.
std::vector<std::vector<int64_t>> batches(int64_t items, const std::vector<int64_t>& lengths,
                                          const BatchPlan&);

// For evaluation: in order of length, each item once.
std::vector<std::vector<int64_t>> ordered_batches(int64_t items,
                                                  const std::vector<int64_t>& lengths,
                                                  const BatchPlan&);

}  // namespace fovea::data
