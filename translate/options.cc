#include "translate/options.h"

#include <utility>

#include "translate/task.h"

namespace fovea::translate {

std::vector<std::string> formats(const std::string& generated) {
  return {generated, "folder of PART.LANG[.gz] parallel text", "source<TAB>target lines"};
}

std::vector<Option> corpus_options(Option tokens) {
  return {
      Option("source", "en", "source language: the ending of its files")
          .during({Use::kEvaluate, Use::kExplain}),
      Option("target", "de", "target language: the ending of its files")
          .during({Use::kEvaluate, Use::kExplain}),
      Option("test", "test", "name of the test files, for example test_2016_flickr")
          .during({Use::kEvaluate, Use::kExplain}),
      std::move(tokens),
      Option("vocabulary", 8000,
             "size of the vocabulary: of both languages together for pieces, of each for words")
          .between(8, 10000000),
      Option("min_count", 1, "words seen fewer times are unknown").between(1, 1000000000),
      Option("lowercase", false, "lower-case all text"),
      Option("longest", 100, "training pairs with more tokens on a side are left out")
          .between(1, 100000),
  };
}

std::vector<Option> task_options(const Defaults& defaults) {
  std::vector<Option> text = joined(
      {Option("generator", defaults.generator.c_str(), "generated text when no --data is given")
           .among({"dates", "reordered", "german", "copy-reverse"})},
      corpus_options(Option("tokens", "auto",
                            "units: words, characters or SentencePiece pieces; auto is pieces for "
                            "--data, characters for dates")
                         .among({"auto", "words", "characters", "pieces"})));
  std::vector<Option> answers = {
      Option("label_smoothing", defaults.label_smoothing,
             "share of the target spread over the other tokens")
          .between(0, 0.9),
      Option("beam", defaults.beam, "width of the beam; 1 is greedy")
          .between(1, 1000)
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain}),
      Option("alpha", defaults.alpha, "exponent of the length normalisation in the beam")
          .between(0, 5)
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain}),
      Option("coverage", defaults.coverage, "weight of the coverage penalty")
          .between(0, 10)
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain}),
      Option("align", false, "predict: print the alignment of each line after ` ||| `")
          .during({Use::kPredict}),
      Option("n_best", 1,
             "predict: number of answers for each line, with log-probability and score")
          .between(1, 1000)
          .during({Use::kPredict}),
      Option("forced", false,
             "predict: read source<TAB>target lines, print each target's log-probability and "
             "number of tokens")
          .during({Use::kPredict}),
      Option("control", "",
             "explain: a .json explanation of another run (seq2seq: the bottleneck) to draw in the "
             "plot of score against length")
          .during({Use::kExplain}),
      Option("replace_unknown", false,
             "replace an unknown word by the source word with the largest weight")
          .during({Use::kPredict}),
  };
  return joined(std::move(text), std::move(answers));
}

}  // namespace fovea::translate
