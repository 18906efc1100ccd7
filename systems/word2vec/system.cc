#include <ATen/ATen.h>

#include <cmath>
#include <set>

#include "systems/system.h"
#include "systems/word2vec/bag.h"
#include "systems/word2vec/task.h"
#include "text/generate.h"
#include "text/task.h"
#include "text/vectors.h"

namespace fovea::systems::word2vec {
namespace {

std::unique_ptr<Task> make(const RunOptions& run_options) {
  const std::string& model = run_options.options.text("model");
  if (model == "skip-gram" || model == "cbow") return std::make_unique<Word2vecTask>(run_options);
  text::Parts parts{
      .generators = {{"hidden", text::generate_reviews}},
      .model =
          [](const OptionValues&, const text::Known& known) {
            return std::make_shared<BagModel>(known.embedding, known.classes);
          },
      .embedding = [](text::Model& one) { return dynamic_cast<BagModel&>(one).embedding; }};
  if (model == "gru") {
    parts.model = [](const OptionValues&, const text::Known& known) {
      return std::make_shared<GruBagModel>(known.embedding, known.classes);
    };
    parts.embedding = [](text::Model& one) { return dynamic_cast<GruBagModel&>(one).embedding; };
  }
  if (model == "tf-idf") {
    parts.begin = [](text::Model& one, const at::Tensor& documents, int64_t total) {
      dynamic_cast<BagModel&>(one).set_idf(
          (static_cast<double>(total) / documents.to(at::kDouble).clamp_min(1))
              .log()
              .to(at::kFloat));
    };
  }
  return std::make_unique<text::TextTask>(run_options, std::move(parts));
}

std::vector<Option> options() {
  std::vector<Option> all = text::task_options({.width = 50, .min_count = 5});
  all.push_back(
      Option("generator", "hidden", "generated text when no --data is given").among({"hidden"}));
  all.push_back(Option("model", "skip-gram",
                       "skip-gram, cbow: word vectors from plain text; bag, tf-idf: a linear "
                       "classifier of labelled text; gru: the same with φ the state of a GRU at "
                       "the word")
                    .among({"skip-gram", "cbow", "bag", "tf-idf", "gru"}));
  all.push_back(Option("more", "", "more files of plain text, separated by commas"));
  all.push_back(
      Option("window", 5,
             "largest number of words on each side; for each word a number from 1 to this is drawn")
          .between(1, 100));
  all.push_back(Option("negatives", 5, "number of noise words for each pair").between(1, 100));
  all.push_back(
      Option("sample", 1e-3, "t: a word of frequency f is kept with probability √(t/f); 0: all are")
          .between(0, 1));
  all.push_back(Option("format", "word2vec", "format of the file of vectors in the run's folder")
                    .among(text::kVectorFormats.names()));
  return all;
}

const Registration registered{System{
    .info =
        {.name = "word2vec",
         .number = 6,
         .title = "Bag of words and word2vec",
         .idea = "A text as the bag of its words: each adds its vector, wherever it stands. With "
                 "one-hot vectors, or those weighted by how rare a word is (tf-idf), that is "
                 "the classic bag of words. word2vec learns the vectors instead, from nothing but "
                 "which words stand near which: a word's vector must tell its neighbours "
                 "from words drawn at random.\n\nIt is attention whose window looks at all its "
                 "words alike. The vectors are what everything after it is built on.",
         .paper = "Salton & McGill 1986; Mikolov, Sutskever, Chen, Corrado & Dean 2013",
         .equation =
             R"(\log\, \sigma(u_o^\top v_c) + \sum_k \log\, \sigma(-u_k^\top v_c), \quad k \sim \operatorname{count}^{0.75})",
         .code = "auto bag = fovea::attend(blank, none, phi,\n"
                 "                         {.score = fovea::Constant{},\n"
                 "                          .normaliser = fovea::Unnormalised{},\n"
                 "                          .structure = fovea::Ragged{one_each, offsets}});",
         .triple = {"none", "none", "x_w", "constant", "none", "window or sentence"},
         .formats = {"generated sentences of slots",
                     "plain text, one sentence on each line (labels at the start of every line are "
                     "left out)",
                     "model=bag, tf-idf: labelled text"},
         .expect = "measured: generated text: nearest neighbour of the same slot 98 to 100 %; MR, "
                   "SUBJ and Multi30k: 37 % of 218 easy analogies"},
    .options = options(),
    .recipe = train::Recipe{.epochs = 5, .batch = 32, .rate = 0.025, .monitor = "accuracy"},
    .tour = {"epochs=10"},
    .make = make,
}};

}  // namespace
}  // namespace fovea::systems::word2vec
