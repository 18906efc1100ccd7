// Plates of food and their recipes: what is on the plate decides the ingredients, the ingredients decide
// the steps, and only the picture shows which plate it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/captions/box.h"
#include "data/digits.h"
#include "data/recipes.h"
#include "data/split.h"

namespace fovea::data {

struct Plate {
  std::vector<uint8_t> pixels;  // [side, side, 3]
  Recipe recipe;
  std::vector<Box> boxes;  // of each ingredient of the recipe
};

struct PlatePlan {
  int64_t side = 64;  // pixels
  PartSizes parts = kGenerated;
  uint64_t seed = 1;
};

struct Plates {
  int64_t side = 0;
  std::vector<Plate> items;
  Splits splits;
};

inline constexpr int64_t kIngredients = 10;
const std::string& ingredient_name(int64_t ingredient);
// The two plates, as the last step has them.
const std::vector<std::string>& plate_colours();

// Two to four of ten ingredients, drawn. Some come together more often than others.
Plates generate_plates(const PlatePlan& plan);
// The same with pictures in the place of drawings: those of class k are ingredient k. Pictures of
// `from.test` are on test plates alone, and a tenth of the others on validation plates alone.
Plates plates_of(const PlatePlan& plan, const DigitSets& from);

// Title and steps, by six kinds of step (chop, boil, beat, fry, top, serve) whose order depends on the
// ingredients. `seed` draws what is free: "chop" or "slice".
Recipe recipe_of(const std::vector<int64_t>& ingredients, const std::string& plate, uint64_t seed);

}  // namespace fovea::data
