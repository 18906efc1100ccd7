// Recipes: titles, ingredients, steps and perhaps a picture, as JSON Lines or as tables of ingredients.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/split.h"

namespace fovea::data {

struct Recipe {
  std::string picture = {};              // a file's name; empty: none
  std::string kind = {};                 // "apple_pie", "greek"; empty: not said
  std::string title = {};                // empty: none
  std::vector<std::string> ingredients;  // each once, in the order of the file
  std::vector<std::string> steps = {};
  std::string split = {};  // as written; empty: not said
};

// A line is a recipe, all in one of these forms:
//   {"picture", "title", "ingredients": […], "steps": […], "kind", "split"}   all but "ingredients" optional
//   split<TAB>kind<TAB>title<TAB>raw ingredients<TAB>ingredients              Recipes5k
//   id<TAB>kind<TAB>ingredients                                               What's Cooking; kind ?: unknown
// Ingredients of a table stand between '|'. A recipe may have none.
std::vector<Recipe> parse_recipes(const std::string& text, const std::string& path);
std::string recipe_lines(const std::vector<Recipe>& recipes);

struct Recipes {
  std::vector<Recipe> items;
  Splits splits;
  std::string folder;  // of the pictures
};
// A file, or a folder with recipes.jsonl or recipes*.tsv, or with train.tsv and perhaps test.tsv (gzip
// or not). Splits are the file's own where every recipe names one, and otherwise as `request` says.
Recipes read_recipes(const std::string& path, const SplitRequest& request);

}  // namespace fovea::data
