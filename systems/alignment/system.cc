#include "systems/alignment/task.h"
#include "systems/system.h"

namespace fovea::systems::alignment {
namespace {

std::vector<Option> options() {
  return {
      Option("method", "bahdanau",
             "attention of S20, S21 (dot) or S27 under forced decoding; the neural IBM model; or "
             "the baselines")
          .among({"bahdanau", "luong", "transformer", "neural", "ibm1", "diagonal"}),
      Option("both", false, "learn both directions, for symmetrisation"),
      Option("symmetrise", "none", "how the two directions' links are joined")
          .among({"none", "intersection", "union", "grow-diag-final-and"}),
      Option("gold", "",
             "NAME.src-tgt beside NAME.gold: pairs with gold alignments, as the test split"),
      Option("output", "pharaoh", "predict: links, or JSON with the soft matrix between words")
          .among({"pharaoh", "soft"}),
      Option("source", "en", "language read: the ending of its files"),
      Option("target", "de", "language written"),
      Option("test", "test", "name of the test files"),
      Option("tokens", "words", "units that are aligned; links are between words")
          .among({"words", "pieces"}),
      Option("vocabulary", 8000,
             "size of the vocabulary: of both languages together for pieces, of each for words")
          .at_least(8),
      Option("min_count", 1, "words seen fewer times are unknown").at_least(1),
      Option("lowercase", false, "lower-case all text"),
      Option("longest", 100, "training pairs with more tokens on a side are left out").at_least(1),
      Option("passes", 5, "of expectation maximisation (ibm1)").at_least(1),
      Option("label_smoothing", 0.0, "of the attention models").between(0, 0.9),
      Option("width", 64, "of words and states").at_least(4),
      Option("dropout", 0.1, "on words").between(0, 0.9),
      Option("align_layer", -1,
             "transformer: the decoder layer that aligns; negative counts from the last"),
      Option("align_head", -1, "transformer: its head; -1 is the mean of all"),
  };
}

const Registration registered{System{
    .info = {.name = "alignment",
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
                 "<math "
                 "display=\"block\"><mrow><mi>AER</mi><mo>=</mo><mn>1</mn><mo>−</"
                 "mo><mfrac><mrow><mo>|</mo><mi>A</mi><mo>∩</mo><mi>S</mi>"
                 "<mo>|</mo><mo>+</mo><mo>|</mo><mi>A</mi><mo>∩</mo><mi>P</mi><mo>|</mo></"
                 "mrow><mrow><mo>|</mo><mi>A</mi><mo>|</mo><mo>+</mo><mo>|</mo>"
                 "<mi>S</mi><mo>|</mo></mrow></mfrac><mo>,</mo><mspace "
                 "width=\"1em\"/><mi>A</mi><mo>=</mo><mo>{</mo><mo>(</mo><msub><mi>argmax</mi>"
                 "<mi>j</mi></msub><msub><mi>a</mi><mrow><mi>t</mi><mi>j</mi></mrow></msub><mo>,</"
                 "mo><mi>t</mi><mo>)</mo><mo>}</mo></mrow></math>",
             .equation_text = "A = {(argmax_j a_tj, t)};  AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|)",
             .code = "auto rows = fovea::weights(W(states_before), U(source), {.score = "
                     "fovea::Additive{v}},\n"
                     "                           {}, {.key_lengths = lengths}).weights;  // argmax "
                     "of each row",
             .triple = {"target word", "source word", "none", "additive, dot, or log p(y | x)",
                        "softmax, then argmax", "bipartite"},
             .formats = {"a generated language with known reordering (default)",
                         "folder of PART.LANG[.gz] parallel text, or source<TAB>target lines",
                         "evaluate: NAME.src-tgt with NAME.gold beside it"},
             .expect =
                 "generated: AER below 0.05 (bahdanau), below 0.10 (luong), above 0.7 untrained"},
    .options = options(),
    .recipe =
        train::Recipe{.epochs = 10, .batch = 64, .rate = 3e-3, .schedule = "cosine", .clip = 1.0},
    .tour = {"epochs=5"},
    .make = [](const Setting& setting) { return std::make_unique<AlignmentTask>(setting); },
}};

}  // namespace
}  // namespace fovea::systems::alignment
