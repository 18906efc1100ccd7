#include "systems/gnmt/model.h"
#include "systems/system.h"
#include "translate/task.h"

namespace fovea::systems::gnmt {
namespace {

std::shared_ptr<translate::Model> make(const OptionValues& o,
                                       const translate::Vocabularies& vocabularies) {
  return std::make_shared<GnmtModel>(
      GnmtConfig{.embedding = o.integer("embedding"),
                 .width = o.integer("width"),
                 .layers = o.integer("layers"),
                 .dropout = o.number("dropout"),
                 .query = o.text("query") == "new" ? GnmtQuery::kNew : GnmtQuery::kPrevious},
      vocabularies);
}

// The beam's penalties are those of the paper before its refinement by reinforcement.
std::vector<Option> options() {
  std::vector<Option> all =
      translate::task_options({.generator = "dates", .alpha = 0.2, .coverage = 0.2});
  all.push_back(Option("embedding", 64, "width of a word vector").between(1, 8192));
  all.push_back(Option("width", 128, "width of every layer").between(1, 8192));
  all.push_back(
      Option("layers", 3, "number of layers of the encoder and of the decoder; the paper has 8")
          .between(2, 64));
  all.push_back(
      Option("dropout", 0.1, "dropout before every layer and before the output").between(0, 0.9));
  all.push_back(Option("query", "previous",
                       "state of the decoder's lowest layer that asks: `previous`, as the paper "
                       "writes, or `new`, which has read the word before")
                    .among({"previous", "new"}));
  return all;
}

const Registration registered{System{
    .info =
        {.name = "gnmt",
         .number = 23,
         .title = "Google's neural machine translation",
         .idea = "Deep stacks of LSTM layers read and write. Only the lowest layer of the decoder "
                 "asks where to look, and every layer above reads what it found: so the layers "
                 "above need not wait for the attention, and can work on different words at the "
                 "same time. From the third layer on, a layer adds to what it reads, so that many "
                 "of them can still be trained. The beam divides by a length penalty, and a "
                 "coverage penalty counts source words that nobody looked at.",
         .paper = "Wu et al. 2016, Google's Neural Machine Translation System",
         .equation =
             R"(e_{tj} = v^\top\, \tanh(W s^1_{t-1} + U h_j), \quad c_t = \sum_j \operatorname{softmax}_j(e_{tj})\, h_j, \quad x^\ell_t = x^{\ell-1}_t + \operatorname{LSTM}_\ell([x^{\ell-1}_t; c_t]))",
         .code = "// bottom: the state of the decoder's lowest layer. All its layers read the "
                 "context.\n"
                 "auto context = fovea::attend(W(bottom), U(states), states, {.score = "
                 "fovea::Additive{v}},\n"
                 "                             {.key_lengths = lengths});",
         .triple = {"state of the decoder's lowest layer", "encoder's top state h_j",
                    "encoder's top state h_j", "additive", "softmax", "source"},
         .formats = translate::formats(
             "generated dates (default), a reordered language or copy-and-reverse"),
         .expect = "measured: dates after 5 short epochs 59.7 % exact, with query=new 97.9 %; "
                   "Multi30k en-de 15.3 BLEU after 12 epochs, far from the end"},
    .options = options(),
    .recipe =
        train::Recipe{.epochs = 12, .batch = 32, .rate = 5e-3, .schedule = "cosine", .clip = 1.0},
    .tour = {"generator=german", "epochs=15", "layers=2", "width=48", "embedding=32", "rate=0.006",
             "dropout=0"},
    .step_work = recurrent_work(4),
    .make = translate::task_of("gnmt", make),
}};

}  // namespace
}  // namespace fovea::systems::gnmt
