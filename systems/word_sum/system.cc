#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "systems/system.h"
#include "systems/word_sum/model.h"
#include "text/generate.h"
#include "text/task.h"

namespace fovea::systems::word_sum {
namespace {

constexpr int64_t kAxisWords = 120;  // most frequent ones, drawn on the axis
constexpr size_t kExtremeWords = 10;

std::shared_ptr<text::Model> make(const Settings& o, const text::Known& known) {
  Normaliser pooling = Unnormalised{};
  if (o.text("pool") == "mean") pooling = Uniform{};
  return std::make_shared<WordSumModel>(
      WordSumModel::Config{known.embedding, known.classes, pooling});
}

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

std::vector<explain::Explanation> pictures(text::TextTask& task) {
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

std::vector<Option> options() {
  std::vector<Option> all = text::task_options({.width = 50, .dropout = 0.0, .word_dropout = 0.3});
  all.push_back(Option("generator", "reviews", "generated text when no --data is given")
                    .among({"reviews", "negation"}));
  all.push_back(
      Option("pool", "sum", "sum favours long texts; mean does not").among({"sum", "mean"}));
  return all;
}

const Registration registered{System{
    .info = {.name = "word-sum",
             .number = 7,
             .title = "Word-sum sentiment",
             .idea =
                 "Give every word a vector, add them up, and ask which way the sum points. Because "
                 "all of it is linear, a word comes down to a single "
                 "number, its polarity, and a sentence to the sum of its words' numbers.\n\nThat "
                 "is attention that does not look: every word has weight 1. It "
                 "is a strong baseline. In \"not really great\" it cannot turn \"great\" round: "
                 "\"great\" adds what it always adds, and \"not\" only its own number.",
             .paper = "classical; compare fastText (Joulin et al. 2017)",
             .equation = R"(p = \sigma\Big(w^\top\, \sum_i x_i + b\Big))",
             .code = "auto sum = fovea::attend(blank, x, x,\n"
                     "                         {.score = fovea::Constant{},\n"
                     "                          .normaliser = fovea::Unnormalised{},\n"
                     "                          .structure = fovea::Ragged{one_each, offsets}});",
             .triple = {"none", "none", "x_w", "constant", "none", "sentence"},
             .formats = {"generated reviews, one in ten negated",
                         "label<TAB>text, `label text`, JSON Lines",
                         "folder or stem of train.*, dev.*, test.*"},
             .expect = "measured: generated reviews 91 % (most negated ones are lost); MR 77.2 %"},
    .options = options(),
    .recipe =
        train::Recipe{
            .epochs = 12, .batch = 32, .rate = 2e-3, .patience = 3, .monitor = "accuracy"},
    .tour = {"epochs=6"},
    .make = [](const Setting& setting) -> std::unique_ptr<Task> {
      return std::make_unique<text::TextTask>(
          setting, text::Parts{.generators = {{"reviews", text::generate_reviews},
                                              {"negation", text::generate_negation}},
                               .model = make,
                               .embedding =
                                   [](text::Model& model) {
                                     return dynamic_cast<WordSumModel&>(model).embedding;
                                   },
                               .more = pictures});
    },
}};

}  // namespace
}  // namespace fovea::systems::word_sum
