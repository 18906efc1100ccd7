#include "metrics/sets.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "fovea/error.h"

namespace fovea::metrics {
namespace {

struct LabelCounts {
  double both = 0, predicted_only = 0, true_only = 0;
  double f1() const { return 2 * both / (2 * both + predicted_only + true_only); }
  bool absent() const { return both + predicted_only + true_only == 0; }
};

LabelSet sorted(const LabelSet& set, int64_t classes) {
  LabelSet out = set;
  std::sort(out.begin(), out.end());
  if (!out.empty() && (out.front() < 0 || out.back() >= classes))
    throw InvalidArgument("set_scores: label " +
                          std::to_string(out.front() < 0 ? out.front() : out.back()) +
                          ", expected 0 to " + std::to_string(classes - 1));
  if (const auto twice = std::adjacent_find(out.begin(), out.end()); twice != out.end())
    throw InvalidArgument("set_scores: label " + std::to_string(*twice) +
                          " twice in a set, expected once");
  return out;
}

}  // namespace

SetScores set_scores(const std::vector<LabelSet>& predicted, const std::vector<LabelSet>& truth,
                     int64_t classes) {
  if (predicted.size() != truth.size())
    throw InvalidArgument("set_scores: " + std::to_string(predicted.size()) +
                          " predicted sets, expected " + std::to_string(truth.size()) +
                          " (as many as true ones)");
  std::vector<LabelCounts> of_class(static_cast<size_t>(classes));
  LabelCounts all;
  double iou = 0, exact = 0, size_error = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const LabelSet given = sorted(predicted[i], classes), wanted = sorted(truth[i], classes);
    double both = 0;
    for (const int64_t label : given) {
      const bool right = std::binary_search(wanted.begin(), wanted.end(), label);
      LabelCounts& counts = of_class[static_cast<size_t>(label)];
      (right ? counts.both : counts.predicted_only) += 1;
      both += right;
    }
    for (const int64_t label : wanted)
      if (!std::binary_search(given.begin(), given.end(), label))
        of_class[static_cast<size_t>(label)].true_only += 1;
    const auto many = static_cast<double>(given.size()), due = static_cast<double>(wanted.size());
    all.both += both;
    all.predicted_only += many - both;
    all.true_only += due - both;
    iou += many + due == 0 ? 1 : both / (many + due - both);
    exact += given == wanted;
    size_error += std::abs(many - due);
  }
  const auto items = static_cast<double>(truth.size());
  SetScores out{
      .f1 = all.f1(), .iou = iou / items, .exact = exact / items, .size_error = size_error / items};
  double sum = 0;
  for (const LabelCounts& counts : of_class)
    if (counts.absent())
      ++out.absent_classes;
    else
      sum += counts.f1();
  out.class_f1 = sum / static_cast<double>(classes - out.absent_classes);
  return out;
}

}  // namespace fovea::metrics
