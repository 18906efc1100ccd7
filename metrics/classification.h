// Metrics of a classification: accuracy, macro F1, area under the ROC curve.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fovea::metrics {

double accuracy(const std::vector<int64_t>& predicted, const std::vector<int64_t>& truth);

// Mean over the classes that occur (in truth or prediction) of 2 tp / (2 tp + fp + fn).
double macro_f1(const std::vector<int64_t>& predicted, const std::vector<int64_t>& truth);

// Probability that a positive scores above a negative, ties counted half (Mann–Whitney); nothing if
// one class is absent. InvalidArgument if a score is not finite: it has no rank.
std::optional<double> auc(const std::vector<double>& score, const std::vector<int64_t>& positive);

}  // namespace fovea::metrics
