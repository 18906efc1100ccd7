#include "text/task.h"

namespace fovea::text {

std::vector<Option> task_options(const Defaults& defaults) {
  std::vector<Option> all = {
      Option("columns", "auto", "of a file with tabs; auto goes by the first line")
          .among({"auto", "label,text", "label,id,sentences", "label,aspect,text"})
          .during({Use::kEvaluate, Use::kExplain}),
      Option("positive_above", 0.0,
             "labels are numbers: above it positive, below negative (IMDB's stars: 5); 0: labels "
             "are names")
          .between(-1e9, 1e9)
          .during({Use::kEvaluate, Use::kExplain}),
      Option("tokens", "words",
             "spaces: between blanks; words: lower case, punctuation apart; pieces: SentencePiece")
          .among({"spaces", "words", "pieces"}),
      Option("pieces", 8000, "tokens=pieces: how many to learn").between(8, 1000000),
      Option("pieces_model", "",
             "tokens=pieces: a SentencePiece model to use in place of learning one"),
      Option("vocabulary", 0, "most words known; 0: no limit").between(0, 10000000),
      Option("min_count", defaults.min_count, "words seen fewer times are unknown")
          .between(1, 1000000000),
      Option("width", defaults.width, "of a word vector; of the file's where vectors are given")
          .between(1, 4096),
      Option("vectors", "",
             "word vectors to begin with: a file (GloVe or word2vec, text or binary), or another "
             "run's folder"),
      Option("embedding", "tuned",
             "own: learned from nothing; tuned: begun from the vectors; frozen: those stay")
          .among({"own", "tuned", "frozen"}),
      Option("dropout", defaults.dropout, "on word vectors and before the output").between(0, 0.95),
      Option("word_dropout", defaults.word_dropout, "on whole words").between(0, 0.95),
  };
  if (defaults.level == Level::kSentences) {
    all.push_back(
        Option("longest", 60, "words of a sentence; a longer one is cut").between(1, 100000));
    all.push_back(Option("hide", false,
                         "--data is the folder of MR and SUBJ: documents of objective sentences "
                         "that hide a few polar ones"));
    all.push_back(
        Option("documents", 4000, "hide=true: documents to learn from, each composed anew")
            .between(2, 1000000));
  }
  return all;
}

}  // namespace fovea::text
