// Recipes to learn from: generated plates, or files of the user's own, with pictures or with titles
// alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/recipes.h"
#include "train/option_values.h"
#include "train/types.h"

namespace fovea::systems::inverse_cooking {

struct Dishes {
  data::Recipes recipes;
  std::vector<std::vector<uint8_t>> pixels;  // of each, [side, side, 3]; none: titles are looked at
  std::string note = {};                     // what was left out, and why; empty: nothing
  bool has_pictures() const { return !pixels.empty(); }
  bool has_steps() const;  // any recipe
};

// No path: drawn plates. MNIST's or Fashion-MNIST's folder: plates of its pictures. Otherwise what
// data::read_recipes takes; a picture that cannot be read leaves the splits.
Dishes read_dishes(const Source& source, const OptionValues& options);
Written write_dishes(const Dishes& dishes, int64_t side);

// What stands in the place of a picture: the words of title and kind, and the kind as one word. Numbers
// that tell recipes of one name apart ("Apple Pie_15") are left out.
std::vector<std::string> title_words(const data::Recipe& recipe);

// For each of these recipes the ingredients of the nearest of the others by its title: the largest
// cosine of their words, counted by how rare they are; the first of equals.
std::vector<std::vector<std::string>> of_nearest_title(const std::vector<data::Recipe>& recipes,
                                                       const std::vector<data::Recipe>& known);

}  // namespace fovea::systems::inverse_cooking
