#include "systems/image_to_set/view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>

#include "train/task.h"

namespace fovea::systems::image_to_set {
namespace {

constexpr size_t kMostLabels = 40;  // shown of a table of pairs

std::string listed(const std::vector<std::string>& labels) {
  return labels.empty() ? "nothing" : fmt::format("{}", fmt::join(labels, ", "));
}

std::vector<std::string> without(const std::vector<std::string>& from,
                                 const std::vector<std::string>& these) {
  std::vector<std::string> out;
  for (const std::string& one : from)
    if (std::find(these.begin(), these.end(), one) == these.end()) out.push_back(one);
  return out;
}

std::string verdict(const ShownSet& shown) {
  std::string out = listed(shown.labels);
  if (!shown.is_known) return out;
  const auto missing = without(shown.expected, shown.labels),
             wrong = without(shown.labels, shown.expected);
  if (missing.empty() && wrong.empty()) return out + ", which is right";
  if (!wrong.empty()) out += "; wrong: " + listed(wrong);
  if (!missing.empty()) out += "; missing: " + listed(missing);
  return out;
}

void add_maps(explain::Explanation& out, const std::vector<torch::Tensor>& weights) {
  out.layers.names.clear();
  const int64_t heads = weights.front().size(0);
  out.heads.names = {"mean"};
  for (int64_t head = 0; heads > 1 && head < heads; ++head)
    out.heads.names.push_back(std::to_string(head + 1));
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto layer = static_cast<int>(i);
    out.layers.names.push_back(std::to_string(i + 1));
    out.maps.push_back({layer, 0, to_floats(weights[i].mean(0)), {}});
    for (int64_t head = 0; heads > 1 && head < heads; ++head)
      out.maps.push_back({layer, static_cast<int>(head) + 1, to_floats(weights[i][head]), {}});
  }
  out.layers.chosen = static_cast<int>(weights.size()) - 1;
}

explain::Explanation counted(const std::string& title) {
  explain::Explanation out;
  out.title = title;
  out.view = explain::View::kMatrix;
  out.score = "number of sets";
  out.normaliser = "share of the row";
  out.structure = "the test pictures";
  out.scale = "1";
  out.layers = {"sets", {"true", "predicted"}};
  return out;
}

explain::Explanation together(const JudgedSets& judged) {
  explain::Explanation out = counted("Which labels come together");
  out.query_label = "a set has";
  out.key_label = "and also";
  const size_t shown = std::min(judged.names.size(), kMostLabels);
  for (size_t i = 0; i < shown; ++i) {
    out.queries.emplace_back().text = judged.names[i];
    out.keys.emplace_back().text = judged.names[i];
  }
  const auto add = [&](const std::vector<LabelSet>& sets, int layer) {
    std::vector<float> pairs(shown * shown), alone(shown);
    for (const LabelSet& set : sets)
      for (const int64_t a : set) {
        if (static_cast<size_t>(a) >= shown) continue;
        alone[static_cast<size_t>(a)] += 1;
        for (const int64_t b : set)
          if (a != b && static_cast<size_t>(b) < shown)
            pairs[static_cast<size_t>(a) * shown + static_cast<size_t>(b)] += 1;
      }
    for (size_t i = 0; i < pairs.size(); ++i) pairs[i] /= std::max(1.0f, alone[i / shown]);
    out.maps.push_back({layer, 0, std::move(pairs), {}});
  };
  add(judged.truth, 0);
  add(judged.predicted, 1);
  if (shown < judged.names.size())
    out.notes.push_back(
        fmt::format("The {} most frequent of {} labels.", shown, judged.names.size()));
  return out;
}

explain::Explanation sizes(const JudgedSets& judged) {
  explain::Explanation out = counted("How many labels: true and predicted");
  out.layers = {"sets", {"all"}};
  out.query_label = "true size";
  out.key_label = "predicted size";
  size_t largest = 0;
  for (size_t i = 0; i < judged.truth.size(); ++i)
    largest = std::max({largest, judged.truth[i].size(), judged.predicted[i].size()});
  const size_t n = largest + 1;
  std::vector<float> counts(n * n);
  std::vector<float> rows(n);
  for (size_t i = 0; i < judged.truth.size(); ++i) {
    counts[judged.truth[i].size() * n + judged.predicted[i].size()] += 1;
    rows[judged.truth[i].size()] += 1;
  }
  for (size_t i = 0; i < counts.size(); ++i) counts[i] /= std::max(1.0f, rows[i / n]);
  for (size_t i = 0; i < n; ++i) {
    out.queries.emplace_back().text = fmt::format("{} ({:.0f} sets)", i, rows[i]);
    out.keys.emplace_back().text = std::to_string(i);
  }
  out.maps.push_back({0, 0, std::move(counts), {}});
  return out;
}

}  // namespace

bool lies_in(int64_t region, int64_t grid, const data::Box& box) {
  const double cell = 1 / static_cast<double>(grid);
  const double x = (static_cast<double>(region % grid) + 0.5) * cell,
               y = (static_cast<double>(region / grid) + 0.5) * cell;
  return x >= box.left && x <= box.left + box.width && y >= box.top && y <= box.top + box.height;
}

explain::Explanation picture(const ShownSet& shown) {
  explain::Explanation out;
  out.title = shown.name;
  out.view = shown.grid > 0 && !shown.image.pixels.empty() ? explain::View::kImage
                                                           : explain::View::kMatrix;
  out.score = shown.pools_by_mean ? "constant" : "scaled dot";
  out.normaliser = shown.pools_by_mean ? "uniform" : "softmax per head";
  out.structure = "the picture's regions";
  out.scale = shown.pools_by_mean ? "1" : "1/√(width / heads)";
  out.query_label = "label";
  out.key_label = "region";
  out.outcome = verdict(shown);
  if (!shown.image.pixels.empty())
    out.picture =
        explain::Picture{static_cast<int>(shown.image.width), static_cast<int>(shown.image.height),
                         static_cast<int>(shown.image.channels), shown.image.pixels};
  for (size_t i = 0; i < shown.labels.size(); ++i)
    out.queries.emplace_back().text =
        fmt::format("{}, p = {:.2f}", shown.labels[i], shown.probabilities[i]);
  const int64_t regions = shown.regions;
  if (shown.labels.empty()) {
    out.queries.emplace_back().text = "no label";
    out.notes.emplace_back("An empty set: no label looked anywhere.");
  }
  const double share = shown.grid > 0 ? 1 / static_cast<double>(shown.grid) : 0;
  for (int64_t region = 0; region < regions; ++region) {
    explain::Item& item = out.keys.emplace_back();
    item.text = fmt::format("region {}", region + 1);
    if (shown.grid == 0) continue;
    const int64_t row = region / shown.grid, column = region % shown.grid;
    item.text = fmt::format("row {}, column {}", row + 1, column + 1);
    item.position = {static_cast<double>(column) * share, static_cast<double>(row) * share, share,
                     share};
  }
  add_maps(out, shown.labels.empty() ? std::vector<torch::Tensor>{torch::zeros({1, 1, regions})}
                                     : shown.weights);
  explain::Truth truth{.label = "regions in the label's box"};
  for (size_t i = 0; i < shown.labels.size(); ++i)
    for (const auto& [label, box] : shown.boxes)
      for (int64_t region = 0; label == shown.labels[i] && region < regions; ++region)
        if (lies_in(region, shown.grid, box))
          truth.sure.push_back({static_cast<int32_t>(i), static_cast<int32_t>(region), 1});
  if (!truth.sure.empty()) out.truth = std::move(truth);
  out.notes.push_back(
      "A region's numbers come from more than its own pixels: the weights are a blurred place, not "
      "an outline.");
  return out;
}

std::vector<explain::Explanation> statistics(const JudgedSets& judged) {
  if (judged.truth.empty()) return {};
  return {together(judged), sizes(judged)};
}

}  // namespace fovea::systems::image_to_set
