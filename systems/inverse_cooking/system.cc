#include "systems/system.h"

#include "systems/image_to_set/options.h"
#include "systems/inverse_cooking/task.h"
#include "systems/inverse_cooking/writer.h"

namespace fovea::systems::inverse_cooking {
namespace {

std::vector<Option> options() {
  std::vector<Option> own = {
      Option("fusion", "concatenated", "how a word looks at picture and list")
          .among(kFusions.names()),
      Option("ingredients", 1500, "number of ingredients, the most frequent ones")
          .between(1, 100000),
      Option("least_count", 1, "least count of a word; rarer ones are unknown").between(1, 1000000),
      Option("width", 64, "width of regions, ingredients and words; a multiple of heads")
          .between(2, 4096),
      Option("layers", 2, "number of layers of the recipe's Transformer").between(1, 32),
      Option("ingredient_layers", 2, "transformer predictors: number of layers").between(1, 32),
      Option("longest", 150, "largest number of words of a recipe")
          .between(1, 10000)
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain}),
      Option("smoothing", 0.0, "label smoothing of the words").between(0, 0.9),
      Option("ingredient_weight", 1.0, "weight of the first stage's loss").between(0, 1000),
      Option("side", 64, "pictures are scaled to side x side pixels; size of a plate")
          .between(16, 512),
      Option("plates", 4000, "generated: number of training plates").between(16, 1000000)};
  return joined(joined(image_to_set::predictor_options({.thing = "ingredient",
                                                        .seen = "regions or words",
                                                        .predictor = "transformer-set"}),
                       std::move(own)),
                image_to_set::network_options(8));
}

const Registration registered{{
    .info =
        {.name = "inverse-cooking",
         .number = 37,
         .title = "Inverse cooking",
         .idea =
             "From a picture of a meal to its recipe, in two stages: first the ingredients, a set; "
             "then the title and the steps, written word by word with a look at the picture and a "
             "look at the list. Some words come from the list, others only the picture can tell: "
             "the weights show which.\n\nWithout pictures of yours, plates with two to four things "
             "on them are drawn. What is on a plate decides the steps and their order; whether the "
             "plate is black or blue stands in the recipe too, and in no list.",
         .paper = "Salvador, Drozdzal, Giró-i-Nieto & Romero 2019",
         .equation = R"(o = \operatorname{attend}\big(x, [K_p; K_l], [V_p; V_l]\big))",
         .code = "// One softmax over regions and ingredients; padded ingredients are in no sum.\n"
                 "auto keys = torch::cat({regions, ingredients}, 2);\n"
                 "auto seen = fovea::attend(W_Q(x), W_K(keys), W_V(keys), {},\n"
                 "                          {.key_lengths = lengths});",
         .triple = {.query = "word slot",
                    .key = "region, ingredient",
                    .value = "the same",
                    .score = "scaled dot",
                    .normaliser = "softmax per head",
                    .structure = "regions and list together, or one after the other; causal over "
                                 "the words"},
         .formats = {"generated: plates of two to four ingredients (plates=, side=)",
                     "MNIST's or Fashion-MNIST's folder: its ten classes are the ingredients",
                     "recipes.jsonl: {picture, title, ingredients, steps}, and the pictures",
                     "Recipes5k: split, class, title, raw ingredients, ingredients; or id, class, "
                     "ingredients: from class and title to the ingredients"},
         .expect = "measured: 2,000 plates, 8 epochs, width 48, one seed: F1 0.998, perplexity "
                   "1.11, every "
                   "named ingredient on the list in 96 % of the recipes"},
    .options = options(),
    .recipe = image_to_set::recipe(),
    .tour = {"plates=2000", "epochs=8", "width=48", "rate=0.002"},
    .make = make_inverse_cooking,
}};

}  // namespace
}  // namespace fovea::systems::inverse_cooking
