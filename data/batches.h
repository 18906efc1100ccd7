// Which items go through the model together: shuffled, of like length where lengths are given.
#pragma once

#include <cstdint>
#include <vector>

namespace fovea::data {

struct BatchPlan {
  int64_t items = 32;  // most items in a batch
  int64_t tokens =
      0;  // > 0: most total length of a batch in place of `items`; a longer item goes alone
  uint64_t seed = 0;  // of this epoch
};

// Batches of positions 0 … items - 1, each position once. With lengths: items are shuffled, sorted
// by length within pools of a hundred batches, cut, and the batches shuffled, so that a batch holds
// like lengths and epochs differ.
std::vector<std::vector<int64_t>> batches(int64_t items, const std::vector<int64_t>& lengths,
                                          const BatchPlan&);

// In order, for evaluation: like lengths together, each item once.
std::vector<std::vector<int64_t>> ordered_batches(int64_t items,
                                                  const std::vector<int64_t>& lengths,
                                                  const BatchPlan&);

}  // namespace fovea::data
