// Options and the recipe of a system that names the set of things in a picture; systems/inverse_cooking
// has them too.
#pragma once

#include <string>
#include <vector>

#include "systems/image_to_set/predictors.h"
#include "train/descent/recipe.h"
#include "train/option_values.h"

namespace fovea::systems::image_to_set {

// What one system calls its things and what it sees of them, and the predictor it takes by default.
struct Naming {
  std::string thing, seen;
  const char* predictor;
};

inline std::vector<Option> predictor_options(const Naming& naming) {
  return {Option("predictor", naming.predictor,
                 "what names the " + naming.thing + "s, and how it learns")
              .among(predictor_names()),
          Option("pool", "labels",
                 "feed-forward predictors: labels, a query for each " + naming.thing +
                     "; mean: all " + naming.seen + " alike")
              .among({"labels", "mean"})};
}

inline std::vector<Option> network_options(int64_t grid) {
  return {Option("heads", 4, "number of heads of each attention").between(1, 64),
          Option("dropout", 0.1, "dropout of attention weights and layers").between(0, 0.95),
          Option("end_weight", 1.0, "lstm-set, transformer-set: weight of the end's loss")
              .between(0, 1000),
          Option("grid", grid, "pictures: regions are grid x grid").between(1, 32),
          Option("filters", 16, "pictures: filters of the first convolution").between(1, 512)};
}

inline train::Recipe recipe() {
  return {.epochs = 20,
          .batch = 32,
          .optimiser = "adam",
          .rate = 1e-3,
          .schedule = "cosine",
          .clip = 5,
          .monitor = "f1"};
}

}  // namespace fovea::systems::image_to_set
