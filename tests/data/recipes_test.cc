// Recipes in their three forms, and the plates that are generated.
#include "data/recipes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data/files/file.h"
#include "data/generated/plates.h"
#include "tests/data/files.h"

namespace fovea::data {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_recipes(text, "r");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "taken";
}

TEST(Recipes, ThreeFormsAreRead) {
  const auto json = parse_recipes(
      "{\"picture\": \"a.png\", \"title\": \"Soup\", \"ingredients\": [\"peas\", \" salt\", "
      "\"peas\"], "
      "\"steps\": [\"boil\"], \"split\": \"test\"}\n",
      "r");
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0].picture, "a.png");
  EXPECT_EQ(json[0].ingredients, (std::vector<std::string>{"peas", "salt"})) << "each once";
  EXPECT_EQ(json[0].steps, std::vector<std::string>{"boil"});
  const auto five = parse_recipes("train\tapple_pie\tApple Pie_15\traw\tapple|flour|apple\n", "r");
  EXPECT_EQ(five[0].kind, "apple_pie");
  EXPECT_EQ(five[0].title, "Apple Pie_15");
  EXPECT_EQ(five[0].ingredients, (std::vector<std::string>{"apple", "flour"}));
  EXPECT_EQ(five[0].split, "train");
  const auto three = parse_recipes("10\tgreek\tolives|feta\n11\t?\t\n", "r");
  EXPECT_EQ(three[0].kind, "greek");
  EXPECT_EQ(three[1].kind, "") << "? is not known";
  EXPECT_TRUE(three[1].ingredients.empty()) << "an empty set is one";
}

TEST(Recipes, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_EQ(
      refusal("1\t2\n"),
      "r:1: 2 columns, expected 5 (split, class, title, raw ingredients, ingredients) or 3 (id, "
      "class, ingredients)");
  EXPECT_EQ(refusal("{\"title\": \"x\"}"), "r:1: no \"ingredients\", expected a list of texts");
  EXPECT_EQ(refusal("{\"ingredients\": [1]}"),
            "r:1: expected \"ingredients\" to be a list of texts");
  EXPECT_EQ(refusal("{\"ingredients\": [], \"title\": 3}"), "r:1: expected \"title\" to be a text");
  EXPECT_EQ(refusal("{\"ingredients\": []}\n[1]\n"), "r:2: expected a JSON object");
  EXPECT_EQ(refusal("\n\n"), "r: no recipes in it");
}

TEST(Recipes, LinesAreReadBack) {
  const std::vector<Recipe> one = {{.picture = "p.png",
                                    .kind = "k",
                                    .title = "t",
                                    .ingredients = {"a", "b"},
                                    .steps = {"s"},
                                    .split = "train"},
                                   {.ingredients = {}}};
  const auto again = parse_recipes(recipe_lines(one), "r");
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].title, "t");
  EXPECT_EQ(again[0].ingredients, one[0].ingredients);
  EXPECT_EQ(again[0].steps, one[0].steps);
  EXPECT_TRUE(again[1].ingredients.empty());
}

class RecipeFiles : public Files {};

TEST_F(RecipeFiles, SplitsAreTheFilesOwnOrAsked) {
  write("recipes5k.tsv",
        "train\ta\tA\tx\tx\nval\ta\tB\tx\ty\ntest\ta\tC\tx\tz\ntest\ta\tD\tx\tz\n");
  const Recipes own = read_recipes(base_.string(), {});
  EXPECT_EQ(own.splits.train.size(), 1u);
  EXPECT_EQ(own.splits.validation.size(), 1u);
  EXPECT_EQ(own.splits.test.size(), 2u);
  EXPECT_EQ(own.splits.keys.size(), 4u);
  const Recipes judged = read_recipes(base_.string(), {.all_test = true});
  EXPECT_TRUE(judged.splits.train.empty());
  EXPECT_EQ(judged.splits.test.size(), 2u);
  const Recipes folds = read_recipes(base_.string(), {.fold = 0, .folds = 2});
  EXPECT_EQ(folds.splits.test.size(), 2u) << "folds cut across the file's own parts";
  write("recipes5k.tsv", "train\ta\tA\tx\tx\n\tb\tB\tx\ty\n");
  try {
    read_recipes(base_.string(), {});
    ADD_FAILURE() << "taken";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("1 of 2 recipes name no split, expected all or none"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(RecipeFiles, AFolderWithoutRecipesSaysWhatWasExpected) {
  try {
    read_recipes(base_.string(), {});
    ADD_FAILURE() << "taken";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("expected recipes.jsonl, recipes*.tsv, or train.tsv"),
              std::string::npos);
  }
}

TEST(Plates, TheIngredientsDecideTheStepsAndTheirOrder) {
  const auto at = [](const Recipe& recipe, const std::string& start) {
    const auto found = std::find_if(recipe.steps.begin(), recipe.steps.end(),
                                    [&](const std::string& s) { return s.starts_with(start); });
    return found - recipe.steps.begin();
  };
  // fish 7, peas 3, onion 1, bread 6, cheese 5, egg 4
  const Recipe fish = recipe_of({7, 3, 1}, "blue", 1);
  EXPECT_EQ(fish.ingredients, (std::vector<std::string>{"onion", "peas", "fish"}));
  EXPECT_EQ(fish.title, "onion and peas soup");
  EXPECT_LT(at(fish, "fry the onion in oil then add the fish"), at(fish, "boil the peas"));
  EXPECT_EQ(fish.steps.back(), "serve on the blue plate");
  const Recipe egg = recipe_of({4, 3, 6, 5}, "black", 1);
  EXPECT_LT(at(egg, "boil"), at(egg, "beat"));
  EXPECT_LT(at(egg, "beat"), at(egg, "fry"));
  EXPECT_LT(at(egg, "fry"), at(egg, "grate the cheese on top"));
  EXPECT_EQ(egg.steps.back(), "serve with the bread on the black plate");
  std::set<std::string> verbs;
  for (uint64_t seed = 0; seed < 20; ++seed)
    verbs.insert(recipe_of({0, 2}, "blue", seed).steps.front().substr(0, 4));
  EXPECT_EQ(verbs, (std::set<std::string>{"chop", "slic"})) << "what is free is drawn";
}

TEST(Plates, ArePartedAndDrawnAgainFromTheSameSeed) {
  const PlatePlan plan{.side = 32, .parts = {.train = 30, .validation = 5, .test = 8}, .seed = 3};
  const Plates one = generate_plates(plan), again = generate_plates(plan);
  ASSERT_EQ(one.items.size(), 43u);
  EXPECT_EQ(one.splits.test.size(), 8u);
  std::set<size_t> sizes;
  std::set<std::vector<uint8_t>> distinct;
  for (size_t i = 0; i < one.items.size(); ++i) {
    const Plate& plate = one.items[i];
    EXPECT_EQ(plate.pixels, again.items[i].pixels);
    EXPECT_EQ(plate.pixels.size(), 32u * 32 * 3);
    EXPECT_EQ(plate.boxes.size(), plate.recipe.ingredients.size());
    for (const Box& box : plate.boxes) {
      EXPECT_GE(box.left, 0);
      EXPECT_LE(box.left + box.width, 1.0001);
    }
    sizes.insert(plate.recipe.ingredients.size());
    distinct.insert(plate.pixels);
  }
  EXPECT_EQ(sizes, (std::set<size_t>{2, 3, 4}));
  EXPECT_EQ(distinct.size(), one.items.size());
}

TEST(Plates, PicturesOfTheTestAreOnTestPlatesAlone) {
  // Every test picture is as bright as 200, every training picture as 100.
  const auto flat = [](uint8_t grey) {
    Digits out{.count = 100, .height = 28, .width = 28};
    out.pixels.assign(100 * 28 * 28, grey);
    for (int64_t i = 0; i < 100; ++i) out.labels.push_back(i / 10);
    return out;
  };
  const Plates plates = plates_of({.parts = {.train = 6, .validation = 2, .test = 6}, .seed = 1},
                                  {flat(100), flat(200)});
  const auto brightest = [](const Plate& plate) {
    return *std::max_element(plate.pixels.begin(), plate.pixels.end());
  };
  for (const int64_t i : plates.splits.train)
    EXPECT_LT(brightest(plates.items[static_cast<size_t>(i)]), 185);
  for (const int64_t i : plates.splits.test)
    EXPECT_GT(brightest(plates.items[static_cast<size_t>(i)]), 190);
}

}  // namespace
}  // namespace fovea::data
