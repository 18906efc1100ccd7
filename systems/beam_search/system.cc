#include "systems/system.h"

#include "systems/beam_search/task.h"
#include "translate/task.h"

namespace fovea::systems::beam_search {
namespace {

std::vector<Option> options() {
  std::vector<Option> all = translate::task_options({.generator = "reordered"});
  all.push_back(Option("model", "bahdanau", "the translation model to search with")
                    .among({"bahdanau", "seq2seq"}));
  all.push_back(Option("embedding", 48, "width of a word vector").between(1, 8192));
  all.push_back(Option("width", 64, "width of the states").between(1, 8192));
  all.push_back(
      Option("dropout", 0.1, "dropout of word vectors and before the output").between(0, 0.9));
  return all;
}

const Registration registered{System{
    .info =
        {.name = "beam-search",
         .number = 24,
         .title = "Beam search",
         .idea = "The most probable sentence need not begin with the most probable word. A "
                 "beam keeps the k best beginnings, lets each grow by every "
                 "word, and prunes again. Long sentences multiply more probabilities below "
                 "one, so finished ones are compared after dividing by a "
                 "power of their length.",
         .paper = "Wu et al. 2016, Google's Neural Machine Translation System (penalties); "
                  "Sutskever, Vinyals & Le 2014",
         .equation =
             R"(\operatorname{score}(y) = \frac{\log\, P(y \mid x)}{((5 + |y|) / 6)^{\alpha}} + \beta \sum_j \log\, \min\Big(\sum_t a_{tj},\, 1\Big))",
         .code = "auto found = fovea::nn::beam_search(model, max_lengths, {.beam = 4, "
                 ".length_alpha = 0.6});",
         .triple = {"none", "none", "none", "log P / length penalty", "top k", "the beam"},
         .formats = translate::formats(
             "a generated reordered language (default), dates or copy-and-reverse"),
         .expect = "measured after 4 epochs: greedy 10.1 BLEU, beam 4 10.5"},
    .options = options(),
    .recipe =
        train::Recipe{.epochs = 8, .batch = 64, .rate = 3e-3, .schedule = "cosine", .clip = 1.0},
    .tour = {"generator=german", "epochs=5", "embedding=32", "rate=0.006"},
    .step_work = recurrent_work(3),
    .make = make_beam_search,
}};

}  // namespace
}  // namespace fovea::systems::beam_search
