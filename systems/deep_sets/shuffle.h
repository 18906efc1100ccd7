// The shuffle test: what a page needs to compute the models' answers for a set in any order of its
// members.
#pragma once

#include "explain/explanation.h"
#include "systems/deep_sets/model.h"

namespace fovea::systems::deep_sets {

// The most bytes of weights in a page: 200 KB as base64.
inline constexpr size_t kMostBytes = 150'000;
// Where a GRU is larger, it answers for this many orders beforehand.
inline constexpr int kDrawnOrders = 200;

// Turns an explanation whose keys are a set of digits into the test of Deep Sets and the GRU on
// them, with a table of five orders for where no script runs. features [keys, width].
void add_shuffle_test(explain::Explanation& out, DigitSum& model, const torch::Tensor& features);

// The same where the keys are the points of one cloud; nothing is added where the cloud is too
// large for a page.
void add_shuffle_test(explain::Explanation& out, CloudClassifier& model, const data::Packed& cloud,
                      const std::vector<std::string>& classes);

}  // namespace fovea::systems::deep_sets
