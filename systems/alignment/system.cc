#include "systems/alignment/task.h"
#include "systems/system.h"
#include "translate/options.h"

namespace fovea::systems::alignment {
namespace {

std::vector<Option> options() {
  std::vector<Option> own = {
      Option(
          "method", "bahdanau",
          "attention of that system (luong: dot) under forced decoding; the neural IBM model; or "
          "the baselines")
          .among({"bahdanau", "luong", "transformer", "neural", "ibm1", "diagonal"}),
      Option("generator", "reordered",
             "generated text when no --data is given: made-up words in another order, or German")
          .among({"reordered", "german"}),
      Option("both", false, "train both directions, for symmetrisation"),
      Option("symmetrise", "none", "how the two directions' links are joined")
          .among({"none", "intersection", "union", "grow-diag-final-and"})
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain}),
      Option("gold", "",
             "NAME.src-tgt beside NAME.gold: pairs with gold alignments, as the test split")
          .during({Use::kEvaluate, Use::kExplain}),
      Option("output", "pharaoh", "predict: links, or JSON with the soft matrix between words")
          .among({"pharaoh", "soft"})
          .during({Use::kPredict}),
  };
  std::vector<Option> models = {
      Option("passes", 5, "number of passes of expectation maximisation (ibm1)").between(1, 10000),
      Option("label_smoothing", 0.0, "label smoothing of the attention models").between(0, 0.9),
      Option("width", 64, "width of word vectors and states").between(4, 8192),
      Option("dropout", 0.1, "dropout of word vectors").between(0, 0.9),
      Option("align_layer", -1,
             "transformer: the decoder layer that aligns; negative counts from the last")
          .between(-128, 127)
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain}),
      Option("align_head", -1, "transformer: the head of that layer; -1 is the mean of all")
          .between(-1, 255)
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain}),
  };
  return joined(
      joined(std::move(own),
             translate::corpus_options(
                 Option("tokens", "words", "tokens that are aligned; links are between words")
                     .among({"words", "pieces"}))),
      std::move(models));
}

const Registration registered{System{
    .info =
        {.name = "alignment",
         .number = 22,
         .title = "Word alignment",
         .idea = "Attention was never told which word translates which, yet its weights say "
                 "so. Tell a trained model what to write, take for each "
                 "target word the source word it looked at most, and compare with links drawn "
                 "by people: sure ones it should find, possible ones "
                 "it may. IBM's model of 1993 does the same by counting, and turns out to be "
                 "attention whose log-sum-exp is the likelihood.",
         .paper = "Och & Ney 2003; Brown et al. 1993; Bahdanau, Cho & Bengio 2015",
         .equation =
             R"(A = \{(\operatorname{argmax}_j a_{tj},\, t)\}, \quad \operatorname{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|})",
         .code = "auto rows = fovea::weights(W(states_before), U(source), {.score = "
                 "fovea::Additive{v}},\n"
                 "                           {}, {.key_lengths = lengths}).weights;  // argmax "
                 "of each row",
         .triple = {"target word", "source word", "none", "additive, dot, or log p(y | x)",
                    "softmax, then argmax", "bipartite"},
         .formats = {"a generated language with known reordering (default), or simple German",
                     "folder of PART.LANG[.gz] parallel text, or source<TAB>target lines",
                     "evaluate: NAME.src-tgt with NAME.gold beside it"},
         .expect = "measured: generated: AER 0.046 (bahdanau), 0.060 (luong), 0.88 to 0.97 "
                   "untrained; Hansards 0.156 (neural)"},
    .options = options(),
    .recipe =
        train::Recipe{.epochs = 10, .batch = 64, .rate = 3e-3, .schedule = "cosine", .clip = 1.0},
    .tour = {"generator=german", "epochs=5"},
    .step_work =
        [](const OptionValues& o, const std::string& data) {
          const std::string& method = o.text("method");
          const bool attends = method == "bahdanau" || method == "luong" || method == "transformer";
          return attends && data.empty() ? recurrent_step(o.integer("batch"), o.integer("width"), 4)
                                         : kLargeStep;
        },
    .make =
        [](const RunOptions& run_options) { return std::make_unique<AlignmentTask>(run_options); },
}};

}  // namespace
}  // namespace fovea::systems::alignment
