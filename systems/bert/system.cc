#include "systems/system.h"

#include "systems/bert/tasks.h"
#include "systems/transformer_work.h"

namespace fovea::systems::bert {
namespace {

std::vector<Option> options() {
  return {
      Option("task", "pretrain",
             "guess words and what follows; classes of texts; answers within a text")
          .among({"pretrain", "classify", "span"}),
      Option("folder", "",
             "a Hugging Face folder of a BERT encoder to start from; --epochs 0 takes it as it is"),
      Option("fresh", false, "take sizes and pieces of the folder, but draw new weights"),
      Option("documents", 4000, "number of generated documents, texts or questions")
          .between(10, 10'000'000),
      Option("column", 0, "pretrain: the column of a line that is the text; 0: the last")
          .between(0, 1000),
      Option("most_documents", 0, "pretrain: largest number of documents to read; 0: all")
          .between(0, 1'000'000'000),
      Option("vocabulary", 8000, "largest number of pieces to learn").between(10, 1'000'000),
      Option("width", 64, "width of the model").between(1, 8192),
      Option("hidden", 256, "width of the feed-forward nets").between(1, 65536),
      Option("layers", 2, "number of layers").between(1, 128),
      Option("heads", 4, "number of heads; must divide the width").between(1, 256),
      Option("context", 32, "largest number of tokens of a sequence").between(8, 65536),
      Option("dropout", 0.1, "dropout of embeddings, weights and what layers add").between(0, 0.9),
      Option("masked", 0.15, "pretrain: share of the tokens to guess").between(0, 1),
      Option("judged", 2000, "pretrain: largest number of pairs of a split to evaluate")
          .between(1, 1'000'000'000)
          .during({Use::kEvaluate}),
      Option("answer", "auto",
             "what predict prints: the words at [MASK], a vector, a vector for each token, a "
             "class, an answer in the text")
          .among({"auto", "fill", "embed", "states", "class", "span"})
          .during({Use::kPredict}),
      Option("guesses", 5, "fill: number of words for each [MASK]")
          .between(1, 1000)
          .during({Use::kPredict})};
}

const Registration registered{System{
    .info =
        {.name = "bert",
         .number = 28,
         .title = "BERT",
         .idea =
             "To guess a hidden word, look at both sides of it. An encoder of the Transformer "
             "reads "
             "a text in which some words are masked, and says what stood there; and it says "
             "whether "
             "the second of two parts follows the first. No label is needed for either, so it "
             "learns from any text. A small head on top then learns a task from few examples: "
             "classes, answers within a text, vectors of sentences. Sentences of different lengths "
             "stand in one batch without padding.",
         .paper = "Devlin, Chang, Lee & Toutanova 2019; Reimers & Gurevych 2019 (vectors of "
                  "sentences)",
         .equation =
             R"(p(w_i) = \operatorname{softmax}\big(E\, \operatorname{LN}(\operatorname{gelu}(W h_i)) + b\big), \quad h_i = \sum_{j} \operatorname{softmax}_j(q_i^\top k_j / \sqrt{d})\, v_j)",
         .code = "auto h = fovea::attend(query, key, value,\n"
                 "                       {.structure = fovea::Ragged{offsets, offsets}});",
         .triple = {"x_i W^Q", "x_j W^K", "x_j W^V", "scaled dot", "softmax per head",
                    "each sequence within itself (ragged)"},
         .formats = {"generated documents, texts and questions about people and their trades",
                     "task=pretrain: a text file; one document on each line (the last column, or "
                     "column=N), "
                     "or sentences with a blank line between documents",
                     "task=classify: labelled text as word-sum reads it",
                     "task=span: question<TAB>context<TAB>answer, or JSON Lines",
                     "folder=: config.json, model.safetensors, vocab.txt or tokenizer.json"},
         .expect = "measured: MiniLM-L6: hidden states within 1e-4 of transformers', cosines of "
                   "embeddings within "
                   "1e-5"},
    .options = options(),
    .recipe = train::Recipe{.epochs = 10,
                            .batch = 32,
                            .optimiser = "adamw",
                            .rate = 2e-3,
                            .epsilon = 1e-6,
                            .weight_decay = 0.01,
                            .schedule = "linear",
                            .warmup = 100,
                            .clip = 1.0},
    .tour = {"epochs=12", "documents=5000"},
    .step_work =
        [](const OptionValues& o, const std::string& data) {
          return o.text("folder").empty() ? transformer_work(30)(o, data) : kLargeStep;
        },
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      const std::string& task = run_options.options.text("task");
      if (task == "classify") return make_classification(run_options);
      return task == "span" ? make_spans(run_options) : make_pretraining(run_options);
    },
}};

}  // namespace
}  // namespace fovea::systems::bert
