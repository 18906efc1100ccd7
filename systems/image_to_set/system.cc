#include "systems/system.h"

#include "systems/image_to_set/options.h"
#include "systems/image_to_set/task.h"

namespace fovea::systems::image_to_set {
namespace {

std::vector<Option> options() {
  std::vector<Option> own = {
      Option("cardinality", "none", "feed-forward: whether the set's size is predicted too")
          .among({"none", "categorical", "dirichlet"}),
      Option("order", "frequency",
             "lstm, transformer: the order in which labels are taught; shuffled: a new one in "
             "every epoch")
          .among({"frequency", "shuffled"}),
      Option("empty", true, "whether a set may be empty"),
      Option("labels", 1000, "number of labels, the most frequent ones").between(1, 100000),
      Option("width", 64, "width of regions and labels; a multiple of heads").between(2, 4096),
      Option("layers", 2, "transformer: number of layers").between(1, 16),
      Option("size_weight", 0.1, "cardinality: weight of the size's loss").between(0, 1000),
      Option("side", 56, "pictures are scaled to side x side pixels; size of a canvas")
          .between(8, 512),
      Option("pictures", 4000, "generated: number of training canvases").between(16, 1000000)};
  return joined(
      joined(predictor_options({.thing = "label", .seen = "regions", .predictor = "transformer"}),
             std::move(own)),
      network_options(7));
}

const Registration registered{{
    .info =
        {.name = "image-to-set",
         .number = 36,
         .title = "Image to set",
         .idea =
             "What is in this picture? The answer is a set: no order, no repeats, and nobody says "
             "how many. One way asks for each label by itself: a query of its own looks over the "
             "picture and says yes or no. Another names one label after another, each time "
             "looking at the picture and at what was named, until it says that this is all. Seven "
             "such predictors stand side by side.\n\nWithout pictures of yours, canvases with none "
             "to four digits are drawn, of which some pairs come together more often than others.",
         .paper = "Pineda, Salvador, Drozdzal & Romero 2019",
         .equation =
             R"(p_t = \operatorname{softmax}_{\, l \notin \{y_1 \dots y_{t-1}\}}(W s_t), \quad s_t = \operatorname{attend}(y_{<t}, \text{regions}), \quad p_l = \sigma\big(w_l^\top \operatorname{attend}(\theta_l, \text{regions})\big))",
         .code =
             "// Feed-forward: a query for each label. In steps: a query for each label so far.\n"
             "auto seen = fovea::attend(slots, W_K(regions), W_V(regions));\n"
             "auto p = torch::sigmoid((torch::relu(W(seen)) * w).sum(-1) + b);",
         .triple = {.query = "label slot",
                    .key = "region, earlier label",
                    .value = "the same",
                    .score = "scaled dot",
                    .normaliser = "softmax per head",
                    .structure = "the picture's regions; causal over the labels"},
         .formats =
             {"generated: canvases of 0 to 4 digits (pictures=, side=)",
              "MNIST's folder: canvases of its digits",
              "a folder of pictures (PNG, JPEG, pictures.idx#3) or of arrays of regions, with "
              "labels.tsv: picture<TAB>dog|grass, | alone: no label; other captions "
              "count by their content words"},
         .expect =
             "measured: canvases, ff-bce, 8 epochs at rate 0.002: F1 0.996, exact sets 0.987, "
             "largest "
             "weight in the digit's box 0.90; Flickr8k's 100 commonest content words, ff-bce, "
             "pool=mean: F1 0.426, the commonest words for every picture 0.263"},
    .options = options(),
    .recipe = recipe(),
    .tour = {"predictor=ff-bce", "epochs=8", "rate=0.002"},
    .make = make_image_to_set,
}};

}  // namespace
}  // namespace fovea::systems::image_to_set
