// The shuffle test: what a page needs to compute the models' answers for a set in any order of its
// members.
#pragma once

#include "explain/explanation.h"
#include "systems/deep_sets/model.h"

namespace fovea::systems::deep_sets {

// The most bytes of weights in a page: 200 KB as base64.
inline constexpr size_t kMostBytes = 150'000;
// A larger GRU is not in the page: its answers for this many orders are computed in advance.
inline constexpr int kDrawnOrders = 200;

// Turns an explanation whose keys are a set of digits into the test of Deep Sets and the GRU on
// them. A table of five orders is for readers without scripts. features [keys, width].
void add_shuffle_test(explain::Explanation& out, DigitSum& model, const torch::Tensor& features);

// The same if the keys are the points of one cloud; nothing is added if the cloud is too large for
// a page.
void add_shuffle_test(explain::Explanation& out, CloudClassifier& model, const data::Packed& cloud,
                      const std::vector<std::string>& classes);

}  // namespace fovea::systems::deep_sets
