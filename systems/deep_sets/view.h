// Pictures of Deep Sets: exact sums against the size of a set, what each digit adds, and the points
// of a cloud that decide.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/digits.h"
#include "data/packed.h"
#include "explain/explanation.h"
#include "systems/deep_sets/model.h"
#include "train/task.h"

namespace fovea::systems::deep_sets {

// `found` has exact_SIZE and gru_exact_SIZE for each size. `largest`: of the sets learned from.
explain::Explanation accuracy_against_size(const Metrics& found, std::span<const int64_t> sizes,
                                           int64_t largest);

// A set of digits: which pictures of `digits` are its members, and their φ(x), [members, width].
struct ShownDigits {
  std::string name;
  const data::Digits& digits;
  std::vector<int64_t> members;
  torch::Tensor phi;
};
// What each picture adds to the answer.
explain::Explanation what_each_adds(const ShownDigits& set, DigitSum& model);
// The same set, to be shuffled by the reader.
explain::Explanation shuffled_digits(const explain::Explanation& set, const std::string& outcome,
                                     DigitSum& model, const torch::Tensor& phi);

// A cloud of points: its name, and its class where that is known.
struct ShownCloud {
  std::string name;
  std::optional<size_t> truth;
  data::Packed points;
};
// Which points the maximum took, and how often; the first cloud can be shuffled where it is small
// enough for a page. At least one cloud.
std::vector<explain::Explanation> points_that_decide(std::span<const ShownCloud> clouds,
                                                     CloudClassifier& model,
                                                     const std::vector<std::string>& classes);

}  // namespace fovea::systems::deep_sets
