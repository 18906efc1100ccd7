#include "text/embedding.h"
#include "text/task.h"

namespace fovea::text {

std::vector<Option> task_options(const Defaults& defaults) {
  std::vector<Option> all = {
      Option("columns", "auto", "columns of a file with tabs; auto: by the first line")
          .among({"auto", "label,text", "label,id,sentences", "label,aspect,text"})
          .during({Use::kEvaluate, Use::kExplain}),
      Option("positive_above", 0.0,
             "labels are numbers: above this positive, below it negative (IMDB's stars: 5); 0: "
             "labels are names")
          .between(-1e9, 1e9)
          .during({Use::kEvaluate, Use::kExplain}),
      Option("tokens", "words",
             "spaces: split at blanks; words: lower case, punctuation split off, each Chinese "
             "character a word; pieces: SentencePiece")
          .among({"spaces", "words", "pieces"}),
      Option("pieces", 8000, "tokens=pieces: number of pieces to learn").between(8, 1000000),
      Option("pieces_model", "",
             "tokens=pieces: a SentencePiece model to use instead of learning one"),
      Option("vocabulary", 0, "largest number of known words; 0: no limit").between(0, 10000000),
      Option("min_count", defaults.min_count, "words seen fewer times are unknown")
          .between(1, 1000000000),
      Option("width", defaults.width,
             "width of a word vector; with a file of vectors, the file's width")
          .between(1, 4096),
      Option("vectors", "",
             "word vectors to start from: a file (GloVe or word2vec, text or binary), or another "
             "run's folder"),
      Option("embedding", "tuned",
             "own: word vectors are trained from random values; tuned: trained from the given "
             "vectors; frozen: the given vectors stay as they are")
          .among(kLearnings.names()),
      Option("dropout", defaults.dropout, "dropout of word vectors and before the output")
          .between(0, 0.95),
      Option("word_dropout", defaults.word_dropout, "dropout of whole words").between(0, 0.95),
  };
  if (defaults.level == Level::kSentences) {
    all.push_back(
        Option("longest", 60, "longest sentence in words; a longer one is cut").between(1, 100000));
    all.push_back(Option("hide", false,
                         "--data is the folder of MR and SUBJ; its sentences become documents of "
                         "objective sentences with a few polar ones"));
    all.push_back(Option("documents", 4000,
                         "hide=true: number of training documents, each composed at random")
                      .between(2, 1000000));
  }
  return all;
}

}  // namespace fovea::text
