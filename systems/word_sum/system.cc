#include "systems/system.h"
#include "systems/word_sum/model.h"
#include "systems/word_sum/view.h"
#include "text/generate.h"
#include "text/task.h"

namespace fovea::systems::word_sum {
namespace {

std::shared_ptr<text::Model> make(const OptionValues& o, const text::Known& known) {
  Normaliser pooling = Unnormalised{};
  if (o.text("pool") == "mean") pooling = Uniform{};
  return std::make_shared<WordSumModel>(
      WordSumModel::Config{known.embedding, known.classes, pooling});
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
             .idea = "Give every word a vector, add them up, and ask which way the sum points. "
                     "Because all of it is linear, a word comes down to a number for each class "
                     "(of two classes: one, its polarity), and a sentence to the sums of its "
                     "words' numbers.\n\nThat is attention that does not look: every word has "
                     "weight 1. It is a strong baseline, but no word can turn another one round. "
                     "Without texts of yours, reviews are made up: in \"not really great\" the "
                     "word \"great\" adds what it always adds, and \"not\" only its own number.",
             .paper = "classical; compare fastText (Joulin et al. 2017)",
             .equation = R"(p = \sigma\Big(w^\top\, \sum_i x_i + b\Big))",
             .code = "auto sum = fovea::attend(blank, x, x,\n"
                     "                         {.score = fovea::Constant{},\n"
                     "                          .normaliser = fovea::Unnormalised{},\n"
                     "                          .structure = fovea::Ragged{one_each, offsets}});",
             .triple = {"none", "none", "x_w", "constant", "none", "sentence"},
             .formats = {"generated reviews, one in ten negated",
                         "CSV or TSV: label,text, or a header with both; `label text`; JSON Lines",
                         "folder or stem of train.*, dev.*, test.*"},
             .expect = "measured: generated reviews 91 % (most negated ones are lost); MR 77.2 %"},
    .options = options(),
    .recipe =
        train::Recipe{
            .epochs = 12, .batch = 32, .rate = 2e-3, .patience = 3, .monitor = "accuracy"},
    .tour = {"epochs=6"},
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return std::make_unique<text::TextTask>(
          run_options, text::Parts{.generators = {{"reviews", text::generate_reviews},
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
