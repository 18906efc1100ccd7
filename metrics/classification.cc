#include "metrics/classification.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "fovea/error.h"

namespace fovea::metrics {

double accuracy(const std::vector<int64_t>& predicted, const std::vector<int64_t>& truth) {
  if (truth.empty()) return 0;
  size_t right = 0;
  for (size_t i = 0; i < truth.size(); ++i) right += predicted[i] == truth[i];
  return static_cast<double>(right) / static_cast<double>(truth.size());
}

double macro_f1(const std::vector<int64_t>& predicted, const std::vector<int64_t>& truth) {
  struct Counts {
    double both = 0, one = 0;  // one: in prediction or truth but not both
  };
  std::map<int64_t, Counts> classes;
  for (size_t i = 0; i < truth.size(); ++i) {
    if (predicted[i] == truth[i]) {
      classes[truth[i]].both += 1;
    } else {
      classes[predicted[i]].one += 1;
      classes[truth[i]].one += 1;
    }
  }
  double sum = 0;
  for (const auto& [name, count] : classes) sum += 2 * count.both / (2 * count.both + count.one);
  return classes.empty() ? 0 : sum / static_cast<double>(classes.size());
}

std::optional<double> auc(const std::vector<double>& score, const std::vector<int64_t>& positive) {
  for (size_t i = 0; i < score.size(); ++i)
    if (!std::isfinite(score[i]))
      throw InvalidArgument("auc: the score of item " + std::to_string(i) + " is " +
                            std::to_string(score[i]) + ", expected a finite number");
  std::vector<size_t> order(score.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score[a] < score[b]; });
  double below = 0, ranks = 0, positives = 0;
  for (size_t start = 0; start < order.size();) {
    size_t end = start;
    double here = 0;
    while (end < order.size() && score[order[end]] == score[order[start]])
      here += positive[order[end++]] != 0;
    const double negatives_here = static_cast<double>(end - start) - here;
    ranks += here * (below + 0.5 * negatives_here);
    below += negatives_here;
    positives += here;
    start = end;
  }
  if (positives == 0 || below == 0) return std::nullopt;
  return ranks / (positives * below);
}

}  // namespace fovea::metrics
