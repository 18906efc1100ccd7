#include "data/recipes.h"

#include <set>

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_recipes(std::string_view bytes) {
  const std::string text(bytes);
  std::vector<data::Recipe> read;
  if (!reads("recipes", [&] { read = data::parse_recipes(text, "recipes"); })) return;
  require(!read.empty(), "a file has recipes");
  for (const data::Recipe& one : read)
    require(std::set<std::string>(one.ingredients.begin(), one.ingredients.end()).size() ==
                one.ingredients.size(),
            "an ingredient comes once");
  const std::vector<data::Recipe> again = data::parse_recipes(data::recipe_lines(read), "again");
  require(again.size() == read.size(), "recipes are read back");
  for (size_t i = 0; i < read.size(); ++i)
    require(again[i].ingredients == read[i].ingredients && again[i].title == read[i].title,
            "a recipe is read back");
}
const Registration recipes{"recipes", fuzz_recipes};

}  // namespace
}  // namespace fovea::fuzz
