// A recipe as a cook would lay it out: picture, title, ingredients, numbered steps; and where each word
// looked, at the picture or at the list.
#pragma once

#include <string>
#include <vector>

#include "data/pictures/image.h"
#include "explain/explanation.h"
#include "systems/inverse_cooking/writer.h"

namespace fovea::systems::inverse_cooking {

struct ShownRecipe {
  std::string name, title;
  std::vector<std::string> steps;
  std::vector<std::string> words;        // of the whole recipe, marks as "1.", "2.", …
  std::vector<std::string> ingredients;  // predicted, which the recipe was written from
  std::vector<float> probabilities;
  bool is_known = false;
  std::vector<std::string> expected;  // ingredients, where they are known
  data::Image image = {};             // of no pixels: a title was looked at
  int64_t grid = 0;
  std::vector<std::string> looked_at;  // the title's words, where there is no picture
  std::vector<torch::Tensor> weights =
      {};  // of the recipe's words: of each layer [heads, words, keys]
  std::vector<torch::Tensor> set_weights = {};  // of the ingredients, over what was looked at
  std::string fusion;

  bool is_pictured() const { return !image.pixels.empty(); }
};

std::vector<explain::Explanation> pictures(const ShownRecipe& shown);

}  // namespace fovea::systems::inverse_cooking
