#include "systems/convs2s/model.h"
#include "systems/system.h"
#include "translate/task.h"

namespace fovea::systems::convs2s {
namespace {

std::shared_ptr<translate::Model> make(const OptionValues& o,
                                       const translate::Vocabularies& vocabularies) {
  return std::make_shared<ConvS2SModel>(ConvS2SConfig{.width = o.integer("width"),
                                                      .kernel = o.integer("kernel"),
                                                      .encoder_layers = o.integer("layers"),
                                                      .decoder_layers = o.integer("layers"),
                                                      .dropout = o.number("dropout")},
                                        vocabularies);
}

std::vector<Option> options() {
  std::vector<Option> all = translate::task_options({.generator = "reordered"});
  all.push_back(Option("width", 128, "width of the model").between(1, 8192));
  all.push_back(Option("kernel", 3, "width of a convolution in positions; odd").between(1, 1001));
  all.push_back(
      Option("layers", 3, "number of layers of the encoder and of the decoder").between(1, 128));
  all.push_back(Option("dropout", 0.1, "dropout before every layer").between(0, 0.9));
  return all;
}

const Registration registered{System{
    .info =
        {.name = "convs2s",
         .number = 23,
         .title = "Convolutional sequence to sequence",
         .idea = "No recurrence: gated convolutions read both languages, and every decoder "
                 "layer attends for itself, adding the word's own "
                 "embedding to what it reads.",
         .paper = "Gehring et al. 2017, Convolutional Sequence to Sequence Learning",
         .equation =
             R"(a_{ij} = \operatorname{softmax}_j(d_i^\top z_j), \quad c_i = \sum_j a_{ij}\, (z_j + e_j))",
         .code = "auto context = fovea::attend(d, z, z + e, {.score = fovea::Dot{1.0}}, "
                 "{.key_lengths = lengths});",
         .triple = {"decoder state d_i", "encoder output z_j", "z_j + e_j", "dot", "softmax",
                    "source, in every layer"},
         .formats = translate::formats(
             "a generated reordered language (default), dates or copy-and-reverse"),
         .expect = "measured: reordered language 77.3 BLEU, 64.6 % exact"},
    .options = options(),
    .recipe =
        train::Recipe{.epochs = 12, .batch = 64, .rate = 1e-3, .schedule = "cosine", .clip = 1.0},
    .tour = {"generator=german", "epochs=20", "width=48", "layers=2", "rate=0.004"},
    .make = translate::task_of("convs2s", make),
}};

}  // namespace
}  // namespace fovea::systems::convs2s
