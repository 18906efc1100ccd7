#include "systems/system.h"

#include "systems/structured_attention/generated.h"
#include "systems/structured_attention/model.h"
#include "systems/structured_attention/view.h"
#include "text/task.h"
#include "translate/task.h"

namespace fovea::systems::structured_attention {
namespace {

std::vector<Option> options() {
  std::vector<Option> all = joined(joined({}, text::task_options({.width = 32}), "spans: "),
                                   translate::task_options({.beam = 1}), "formulas: ");
  std::erase_if(all, [](const Option& one) { return one.name == "generator"; });
  std::vector<Option> own = {
      Option("task", "formulas",
             "formulas: a text becomes another, with trees over the first; spans: a text has a "
             "class, with a chain over its words")
          .among({"formulas", "spans"}),
      Option("weighing", "structured",
             "marginals of trees or chains, or each weight on its own; none: no heads (formulas), "
             "equal weights (spans)")
          .among(kWeighings.names()),
      Option("depth", 2, "formulas: levels of operators in generated formulas").between(1, 8),
      Option("pairs", 4000, "formulas: number of generated training pairs").between(1, 10000000),
      Option("tokens", "words", "units of the text; characters: formulas only, spaces: spans only")
          .among({"words", "spaces", "characters", "pieces"}),
      Option("vocabulary", 8000, "largest number of known words or pieces").between(8, 10000000),
      Option("min_count", 1, "words seen fewer times are unknown").between(1, 1000000000),
      Option("width", 32, "width of a word vector").between(1, 4096),
      Option("state", 128, "formulas: width of the decoder").between(1, 8192),
      Option("hidden", 32, "spans: width of the net that scores words").between(1, 4096),
      Option("dropout", 0.0, "dropout of word vectors and before the output").between(0, 0.95)};
  return joined(std::move(all), std::move(own));
}

std::unique_ptr<Task> make_formulas(const RunOptions& run_options) {
  return std::make_unique<translate::TranslationTask>(
      "structured-attention", run_options,
      [](const OptionValues& o, const translate::Vocabularies& vocabularies) {
        return std::make_shared<FormulaModel>(
            FormulaConfig{.width = o.integer("width"),
                          .state = o.integer("state"),
                          .dropout = o.number("dropout"),
                          .weighing = kWeighings.of(o.text("weighing"))},
            vocabularies);
      },
      nullptr,
      [](const OptionValues& o, uint64_t seed) {
        return generate_formulas(seed, o.integer("depth"), o.integer("pairs"));
      });
}

std::unique_ptr<Task> make_spans(const RunOptions& run_options) {
  return std::make_unique<text::TextTask>(
      run_options,
      text::Parts{
          .generators = {{"spans", generate_spans}},
          .model =
              [](const OptionValues& o, const text::Known& known) {
                return std::make_shared<SpanModel>(
                    SpanConfig{.embedding = known.embedding,
                               .classes = known.classes,
                               .hidden = o.integer("hidden"),
                               .dropout = o.number("dropout"),
                               .weighing = kWeighings.of(o.text("weighing"))});
              },
          .embedding = [](text::Model& model) { return dynamic_cast<SpanModel&>(model).embedding; },
          .more = span_pictures});
}

const Registration registered{System{
    .info =
        {.name = "structured-attention",
         .number = 31,
         .title = "Structured attention",
         .idea =
             "Softmax chooses one key without regard to what else is chosen. But words form "
             "phrases, and symbols form trees. Here a weight is the probability that a word "
             "belongs to a run, or that one symbol is the head of another, summed over all runs "
             "and over all trees: scores of parts go in, and out come weights that only whole "
             "structures can have. All is differentiable, and no structure is ever taught.\n\n"
             "Without data of yours, formulas are rewritten from prefix to infix (task=formulas), "
             "or the run in a row of colours is found (task=spans).",
         .paper = "Kim, Denton, Hoang & Rush 2017",
         .equation =
             R"(c_j = \sum_i p(z_{ij} = 1)\, x_i, \quad p(z) \propto \mathbf{1}\{z \text{ projective}\}\, \exp \sum_{ij} \theta_{ij} z_{ij}, \quad o = \sum_i p(z_i = 1)\, x_i, \quad p(z) \propto \exp\big(\sum_i \theta_i z_i + \sum_i b_{z_i z_{i+1}}\big))",
         .code = "auto heads = fovea::tree_marginals(arcs, lengths).arcs.transpose(1, 2);\n"
                 "auto c = fovea::attend(heads.unsqueeze(1), none, x,\n"
                 "                       {.score = fovea::Location{}, .normaliser = "
                 "fovea::Unnormalised{}});\n"
                 "auto run = fovea::chain_marginals(unary, b, lengths).states.select(2, 1);\n"
                 "auto o = fovea::attend(run.view({2, 1, 1, 5}), none, x,\n"
                 "                       {.score = fovea::Location{}, .normaliser = "
                 "fovea::Unnormalised{}});",
         .triple = {"the symbol; nothing for a run", "head, or word", "x_i",
                    "potentials of arcs, or of words and neighbours", "marginals",
                    "projective trees, or chains"},
         .formats =
             {"generated formulas (task=formulas) or rows of colours (task=spans)",
              "task=formulas: folder of PART.LANG[.gz] parallel text, source<TAB>target lines",
              "task=spans: label<TAB>text, `label text`, JSON Lines, or a folder of train.*, "
              "dev.*, test.*"},
         .expect = "measured: formulas two operators deep 99 % right before the first error, three "
                   "deep 98 %; spans 99 %, by softmax 47 %"},
    .options = options(),
    .recipe =
        train::Recipe{.epochs = 12, .batch = 32, .rate = 3e-3, .schedule = "cosine", .clip = 1.0},
    .tour = {"task=spans", "epochs=10"},
    .step_work =
        [](const OptionValues& o, const std::string& data) {
          return data.empty() ? recurrent_step(o.integer("batch"), o.integer("state"), 4)
                              : kLargeStep;
        },
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return run_options.options.text("task") == "spans" ? make_spans(run_options)
                                                         : make_formulas(run_options);
    },
}};

}  // namespace
}  // namespace fovea::systems::structured_attention
