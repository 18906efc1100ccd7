#include "systems/word_sum/view.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "systems/word_sum/model.h"
#include "text/task.h"

namespace fovea::systems::word_sum {
namespace {

constexpr int64_t kAxisWords = 120;  // most frequent ones, drawn on the axis
constexpr size_t kExtremeWords = 10;

// Every word is one number: the axis with the frequent words, and the ends of it.
explain::Explanation polarity_axis(text::TextTask& task) {
  auto& model = dynamic_cast<WordSumModel&>(task.model());
  const at::Tensor polarity = model.polarity(model.embedding->weight).select(1, 0).cpu();
  explain::Explanation out;
  out.title = "Every word is one number: its polarity wᵀx";
  out.view = explain::View::kCurve;
  out.score = "constant", out.normaliser = "none", out.structure = "sentence", out.scale = "1";
  explain::Plot& plot = out.plots.emplace_back();
  plot.title = "Polarity axis";
  plot.x_label =
      fmt::format("polarity wᵀx (right: {})",
                  task.class_names().size() == 2 ? task.class_names()[1] : task.class_names()[0]);
  plot.y_label = "rank by frequency";
  plot.log_y = true;
  explain::Curve& points = plot.curves.emplace_back();
  points.kind = explain::Curve::Kind::kPoints;
  points.label = "words";
  const int64_t words = task.vocabulary().size();
  for (int64_t id = data::kEos + 1; id < std::min(words, kAxisWords + data::kEos + 1); ++id) {
    points.x.push_back(polarity[id].item<double>());
    points.y.push_back(static_cast<double>(id - data::kEos));
    points.names.push_back(task.vocabulary().word(id));
  }
  const at::Tensor order = polarity.argsort();
  explain::Table& table = out.tables.emplace_back();
  table.title = "The ends of the axis";
  table.columns = {"lowest", "wᵀx", "highest", "wᵀx"};
  for (size_t i = 0;
       i < std::min(kExtremeWords, static_cast<size_t>(std::max<int64_t>(words - 4, 0))); ++i) {
    const int64_t low = order[static_cast<int64_t>(i)].item<int64_t>(),
                  high = order[-1 - static_cast<int64_t>(i)].item<int64_t>();
    table.rows.push_back(
        {task.vocabulary().word(low), fmt::format("{:.2f}", polarity[low].item<double>()),
         task.vocabulary().word(high), fmt::format("{:.2f}", polarity[high].item<double>())});
  }
  return out;
}

}  // namespace

std::vector<explain::Explanation> pictures(text::TextTask& task) {
  if (task.own_data()) return {polarity_axis(task)};
  std::vector<explain::Explanation> out;
  for (const char* line : {"really great", "not really great"}) {
    text::Document document;
    document.texts = {line};
    out.push_back(task.picture(document, fmt::format("\"{}\"", line)));
  }
  out[1].notes.push_back(
      "The failing pair: \"great\" adds the same number in both, so \"not\" cannot turn it round; "
      "it can only add its own.");
  out.push_back(polarity_axis(task));
  return out;
}

}  // namespace fovea::systems::word_sum
