#include "systems/image_to_set/labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "fovea/error.h"

namespace fovea::systems::image_to_set {

Labels::Labels(const std::vector<std::vector<std::string>>& sets, int64_t most) {
  std::map<std::string, int64_t> counts;
  for (const auto& set : sets)
    for (const std::string& label : set) ++counts[label];
  std::vector<std::pair<std::string, int64_t>> order(counts.begin(), counts.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  order.resize(std::min(order.size(), static_cast<size_t>(most)));
  if (order.empty())
    throw InvalidArgument("labels: none in the training pictures, expected at least one");
  for (auto& [name, count] : order) {
    numbers_.emplace(name, size());
    names_.push_back(name);
  }
}

Labels::Labels(std::vector<std::string> names) : names_(std::move(names)) {
  if (names_.empty()) throw InvalidArgument("labels: an empty list, expected at least one");
  for (const std::string& name : names_)
    if (!numbers_.emplace(name, static_cast<int64_t>(numbers_.size())).second)
      throw InvalidArgument("labels: '" + name + "' twice, expected once");
}

std::vector<std::string> Labels::names_of(const LabelSet& set) const {
  return gathered(names_, set);
}

Labels::Known Labels::of(const std::vector<std::string>& names) const {
  Known out;
  for (const std::string& name : names)
    if (const auto found = numbers_.find(name); found != numbers_.end())
      out.set.push_back(found->second);
    else
      ++out.unknown;
  std::sort(out.set.begin(), out.set.end());
  return out;
}

void add_scores(Evaluation& out, const std::vector<LabelSet>& predicted,
                const std::vector<LabelSet>& truth, const Labels& labels) {
  const metrics::SetScores scores = metrics::set_scores(predicted, truth, labels.size());
  out.put("f1", scores.f1);
  out.put("class_f1", scores.class_f1);
  out.put("iou", scores.iou);
  out.put("exact", scores.exact);
  out.put("size_error", scores.size_error);
  if (scores.absent_classes > 0)
    out.notes.push_back(fmt::format(
        "class_f1: {} of {} labels occur neither in the truth nor in a prediction and are skipped",
        scores.absent_classes, labels.size()));
}

}  // namespace fovea::systems::image_to_set
