#include "systems/bahdanau/model.h"
#include "systems/normaliser_option.h"
#include "systems/system.h"
#include "translate/task.h"

namespace fovea::systems::bahdanau {
namespace {

std::shared_ptr<translate::Model> make(const OptionValues& o,
                                       const translate::Vocabularies& vocabularies) {
  BahdanauConfig config{.embedding = o.integer("embedding"),
                        .width = o.integer("width"),
                        .alignment = o.integer("width"),
                        .encoder_layers = o.integer("layers"),
                        .dropout = o.number("dropout")};
  config.normaliser_name = o.text("normaliser");
  config.normaliser = normaliser_named(config.normaliser_name);
  return std::make_shared<BahdanauModel>(config, vocabularies);
}

std::vector<Option> options() {
  std::vector<Option> all = translate::task_options({.generator = "dates"});
  all.push_back(Option("embedding", 64, "width of a word vector").between(1, 8192));
  all.push_back(
      Option("width", 128,
             "width of the decoder, of each direction of the encoder, and of the alignment")
          .between(1, 8192));
  all.push_back(Option("layers", 1, "number of layers of the encoder").between(1, 128));
  all.push_back(
      Option("dropout", 0.1, "dropout of word vectors and before the output").between(0, 0.9));
  all.push_back(normaliser_option());
  return all;
}

const Registration registered{System{
    .info =
        {.name = "bahdanau",
         .number = 20,
         .title = "Bahdanau attention",
         .idea = "A sentence of any length need not fit into one vector. For every word it "
                 "writes, the decoder scores every source "
                 "state against its own, and reads their weighted mean. The weights are an "
                 "alignment nobody taught it.",
         .paper = "Bahdanau, Cho & Bengio 2015, Neural Machine Translation by Jointly Learning "
                  "to Align and Translate",
         .equation =
             R"(e_{tj} = v^\top\, \tanh(W s_{t-1} + U h_j), \quad c_t = \sum_j \operatorname{softmax}_j(e_{tj})\, h_j)",
         .code = "auto context = fovea::attend(W(state), U(states), states, {.score = "
                 "fovea::Additive{v}},\n"
                 "                             {.key_lengths = lengths});",
         .triple = {"decoder state s_{t−1}", "encoder state h_j", "encoder state h_j", "additive",
                    "softmax", "source"},
         .formats = translate::formats(
             "generated dates (default), a reordered language or copy-and-reverse"),
         .expect =
             "measured: dates 100 % exact, alignment hit rate 98 %; Multi30k en-de 38.5 BLEU"},
    .options = options(),
    .recipe =
        train::Recipe{.epochs = 12, .batch = 64, .rate = 3e-3, .schedule = "cosine", .clip = 1.0},
    .tour = {"generator=german", "epochs=5", "width=64", "embedding=32", "rate=0.006"},
    .step_work = recurrent_work(3),
    .make = translate::task_of("bahdanau", make),
}};

}  // namespace
}  // namespace fovea::systems::bahdanau
