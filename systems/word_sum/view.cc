#include "systems/word_sum/view.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "systems/word_sum/model.h"
#include "text/pictures.h"
#include "text/task.h"

namespace fovea::systems::word_sum {
namespace {

constexpr int64_t kAxisWords = 120;  // most frequent ones, drawn on the axis
constexpr size_t kExtremeWords = 10;
constexpr int64_t kShownClasses = 6;  // columns of a table
constexpr int64_t kPlaneWords = 80;   // most frequent ones, drawn in the plane
constexpr double kSpeaks = 0.2;  // of the farthest word: from here on a word speaks for a class

// Words of the vocabulary in the order of a number, smallest first; special tokens are no words.
std::vector<int64_t> by_number(const at::Tensor& number) {
  const at::Tensor order = number.slice(0, data::kEos + 1).argsort() + (data::kEos + 1);
  return {order.data_ptr<int64_t>(), order.data_ptr<int64_t>() + order.numel()};
}

explain::Table ends_of_axis(text::TextTask& task, const at::Tensor& polarity) {
  const std::vector<int64_t> order = by_number(polarity);
  explain::Table table;
  table.title = "The ends of the axis";
  table.columns = {"lowest", "wᵀx", "highest", "wᵀx"};
  for (size_t i = 0; i < std::min(kExtremeWords, order.size()); ++i) {
    const int64_t low = order[i], high = order[order.size() - 1 - i];
    table.rows.push_back(
        {task.vocabulary().word(low), fmt::format("{:.2f}", polarity[low].item<double>()),
         task.vocabulary().word(high), fmt::format("{:.2f}", polarity[high].item<double>())});
  }
  return table;
}

// A column for each class: the words that add most to it.
explain::Table strongest_words(text::TextTask& task, const at::Tensor& all) {
  explain::Table table;
  const int64_t classes = std::min(all.size(1), kShownClasses);
  table.title = all.size(1) > classes
                    ? fmt::format("The strongest words of {} of {} classes", classes, all.size(1))
                    : "The strongest words of each class";
  for (int64_t c = 0; c < classes; ++c) {
    table.columns.push_back(task.class_names()[static_cast<size_t>(c)]);
    const std::vector<int64_t> order = by_number(all.select(1, c).contiguous());
    table.rows.resize(std::min(kExtremeWords, order.size()));
    for (size_t i = 0; i < table.rows.size(); ++i)
      table.rows[i].push_back(task.vocabulary().word(order[order.size() - 1 - i]));
  }
  return table;
}

// Every word is one number, or one for each of several classes: the axis with the frequent words,
// and the ends of it.
explain::Explanation polarity_axis(text::TextTask& task) {
  auto& model = dynamic_cast<WordSumModel&>(task.model());
  const at::Tensor all = model.polarity(model.embedding->weight).detach().cpu();
  const at::Tensor polarity = all.select(1, 0);
  const bool two = task.class_names().size() == 2;
  const std::string& towards = task.class_names()[two ? 1 : 0];
  explain::Explanation out;
  out.title = two ? "Every word is one number: its polarity wᵀx"
                  : fmt::format("Every word is one number for each class: wᵀx for {}", towards);
  out.view = explain::View::kCurve;
  out.score = "constant", out.normaliser = "none", out.structure = "sentence", out.scale = "1";
  explain::Plot& plot = out.plots.emplace_back();
  plot.title = "Polarity axis";
  plot.x_label = fmt::format("wᵀx: the further to the right, the more it speaks for {}", towards);
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
  out.tables.push_back(two ? ends_of_axis(task, polarity) : strongest_words(task, all));
  return out;
}
// The words in the plane of w and of the direction across it in which they differ most: what lies
// along w speaks for a class, what lies across it speaks for none.
explain::Explanation polarity_plane(text::TextTask& task) {
  auto& model = dynamic_cast<WordSumModel&>(task.model());
  const int64_t count = std::min(kPlaneWords, task.vocabulary().size() - data::kEos - 1);
  const at::Tensor words = model.embedding->weight.detach()
                               .slice(0, data::kEos + 1, data::kEos + 1 + count)
                               .to(at::kCPU, at::kDouble);
  const at::Tensor w = model.weight.detach()[0].to(at::kCPU, at::kDouble);
  const Places places = places_along(words, w);
  const double edge = kSpeaks * places.along.abs().max().item<double>();
  const std::vector<std::string>& classes = task.class_names();
  explain::Explanation out;
  out.title = "Words in the plane: along w, against it, across it";
  out.view = explain::View::kCurve;
  out.score = "constant", out.normaliser = "none", out.structure = "sentence", out.scale = "1";
  explain::Plot& plot = out.plots.emplace_back();
  plot.title = "A word counts by how far it lies along w";
  plot.x_label = "along w: wᵀx / |w|";
  plot.y_label = "across w";
  for (const auto& [label, sign] :
       {std::pair{classes[0] + ": against w", -1}, std::pair{classes[1] + ": along w", 1},
        std::pair{std::string("neither: across w"), 0}}) {
    explain::Curve& points = plot.curves.emplace_back();
    points.kind = explain::Curve::Kind::kPoints;
    points.label = label;
    for (int64_t i = 0; i < count; ++i) {
      const double at = places.along[i].item<double>();
      if ((at > edge) - (at < -edge) != sign) continue;
      points.x.push_back(at);
      points.y.push_back(places.across[i].item<double>());
      points.names.push_back(task.vocabulary().word(data::kEos + 1 + i));
    }
  }
  out.notes.push_back(
      "The sum of a sentence is one more point of this plane, and only its place along w decides. "
      "A word is called neither if it lies within a fifth of the way to the farthest word.");
  return out;
}

struct Told {
  const char *words, *truth;
};
constexpr Told kPairs[] = {{"really great", "positive"},
                           {"not really great", "negative"},
                           {"the plot was dull", "negative"},
                           {"the plot was not dull", "positive"}};

// Sentences with and without "not": a bar for the number of each word.
explain::Explanation what_words_add(text::TextTask& task) {
  explain::Explanation out;
  for (const auto& [line, truth] : kPairs) {
    text::Document document;
    document.texts = {line};
    const explain::Explanation one = task.picture(document, line);
    const auto group = static_cast<int>(out.queries.size());
    if (group == 0) out.score = one.score, out.structure = one.structure, out.scale = one.scale;
    double sum = 0;
    for (size_t word = 0; word < one.keys.size(); ++word) {
      const float adds = one.maps.front().dense[word];
      sum += static_cast<double>(adds);
      if (group == 0 && word == 0) out.maps.emplace_back();
      out.maps.front().links.push_back({group, static_cast<int32_t>(out.keys.size()), adds});
      out.keys.push_back({.text = one.keys[word].text, .group = group});
    }
    out.groups.push_back({.name = line});
    out.queries.push_back({.text = fmt::format("“{}”: the words sum to {}{:.2f}; {}{}", line,
                                               sum < 0 ? "−" : "", std::abs(sum), one.outcome,
                                               one.outcome.starts_with(truth) ? "" : " (wrong)"),
                           .group = group});
  }
  out.title = "What each word adds: “not” cannot turn “great” round";
  out.view = explain::View::kBag;
  out.normaliser = "none: what a word adds, its polarity wᵀx";
  out.query_label = "sentence";
  out.key_label = "word";
  out.notes.push_back(
      "The failing pairs: “great” and “dull” add the same number with “not” and without it; “not” "
      "can only add its own.");
  return out;
}

}  // namespace

Places places_along(const at::Tensor& words, const at::Tensor& w) {
  const at::Tensor unit = w / w.norm().clamp_min(1e-12);
  const at::Tensor along = words.matmul(unit);
  return {along, text::plane(words - along.unsqueeze(1) * unit).select(1, 0)};
}

std::vector<explain::Explanation> pictures(text::TextTask& task) {
  std::vector<explain::Explanation> out;
  if (task.own_data()) {
    out.push_back(polarity_axis(task));
    if (task.class_names().size() == 2) out.push_back(polarity_plane(task));
    return out;
  }
  out.push_back(what_words_add(task));
  out.push_back(polarity_plane(task));
  out.push_back(polarity_axis(task));
  return out;
}

}  // namespace fovea::systems::word_sum
