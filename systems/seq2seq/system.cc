#include "systems/seq2seq/model.h"
#include "systems/system.h"
#include "translate/task.h"

namespace fovea::systems::seq2seq {
namespace {

std::shared_ptr<translate::Model> make(const OptionValues& o,
                                       const translate::Vocabularies& vocabularies) {
  return std::make_shared<Seq2SeqModel>(Seq2SeqConfig{.embedding = o.integer("embedding"),
                                                      .width = o.integer("width"),
                                                      .dropout = o.number("dropout"),
                                                      .reverse = o.flag("reverse")},
                                        vocabularies);
}

std::vector<Option> options() {
  std::vector<Option> all = translate::task_options({.generator = "reordered"});
  all.push_back(Option("embedding", 64, "width of a word vector").between(1, 8192));
  all.push_back(
      Option("width", 256, "width of the one vector that a sentence becomes").between(1, 8192));
  all.push_back(
      Option("dropout", 0.1, "dropout of word vectors and before the output").between(0, 0.9));
  all.push_back(Option("reverse", true, "read the source backwards"));
  return all;
}

const Registration registered{System{
    .info =
        {.name = "seq2seq",
         .number = 19,
         .title = "Plain sequence to sequence",
         .idea = "The bottleneck that attention removes: the decoder starts from the encoder's "
                 "last state and never sees the source again. "
                 "The longer the sentence, the more is lost.",
         .paper = "Sutskever, Vinyals & Le 2014; Cho et al. 2014",
         .equation = R"(s_0 = h_m, \quad s_t = \operatorname{GRU}(s_{t-1}, y_{t-1}))",
         .code = "auto state = encoder->forward(words, lengths).forward;  // all that is left "
                 "of the source",
         .triple = {"none", "none", "last state h_m", "none", "none", "last state only"},
         .formats = translate::formats(
             "a generated reordered language (default), dates or copy-and-reverse"),
         .expect =
             "measured: reordered language 16.8 BLEU (bahdanau: 100); Multi30k en-de 23.1 BLEU"},
    .options = options(),
    .recipe =
        train::Recipe{.epochs = 12, .batch = 64, .rate = 2e-3, .schedule = "cosine", .clip = 1.0},
    .tour = {"generator=german", "epochs=10", "width=128", "rate=0.004"},
    .step_work = recurrent_work(3),
    .make = translate::task_of("seq2seq", make),
}};

}  // namespace
}  // namespace fovea::systems::seq2seq
