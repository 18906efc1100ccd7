// The recipes of the plates: six kinds of step, and rules for their order.
#include <algorithm>
#include <array>

#include "data/generated/plates.h"
#include "data/random.h"

namespace fovea::data {
namespace {

enum Ingredient : int64_t {
  kTomato,
  kOnion,
  kCarrot,
  kPea,
  kEgg,
  kCheese,
  kBread,
  kFish,
  kMushroom,
  kChili
};

const std::array<std::string, kIngredients> kIngredientNames = {
    "tomato", "onion", "carrot", "peas", "egg", "cheese", "bread", "fish", "mushroom", "chili"};

class Grammar {
 public:
  Grammar(const std::vector<int64_t>& ingredients, uint64_t seed)
      : has_(ingredients), random_(seed) {}

  Recipe recipe(const std::string& plate) {
    Recipe out{.title = title(), .ingredients = {}};
    for (const int64_t one : has_)
      out.ingredients.push_back(kIngredientNames[static_cast<size_t>(one)]);
    const auto add = [&](const std::string& step) {
      if (!step.empty()) out.steps.push_back(step);
    };
    add(chop());
    // Fish is fried while the water heats; without it the pan comes last.
    if (has(kFish)) {
      add(fry());
      add(boil());
    } else {
      add(boil());
      add(beat());
      add(fry());
    }
    if (has(kFish)) add(beat());
    add(top());
    out.steps.push_back((has(kBread) ? "serve with the bread on the " : "serve on the ") + plate +
                        " plate");
    return out;
  }

 private:
  bool has(int64_t one) const { return std::find(has_.begin(), has_.end(), one) != has_.end(); }

  // "the onion and the carrot", of those that are there, in this order.
  std::string some(const std::vector<int64_t>& of) const {
    std::string out;
    for (const int64_t one : of)
      if (has(one))
        out += (out.empty() ? "the " : " and the ") + kIngredientNames[static_cast<size_t>(one)];
    return out;
  }
  static std::string step(const std::string& verb, const std::string& what,
                          const std::string& end = "") {
    return what.empty() ? "" : verb + " " + what + end;
  }

  std::string title() const {
    std::string out;
    for (size_t i = 0; i < std::min<size_t>(2, has_.size()); ++i)
      out += (i ? " and " : "") + kIngredientNames[static_cast<size_t>(has_[i])];
    const char* dish = has(kPea) || has(kCarrot) ? " soup" : hot() ? " pan" : " salad";
    return out + dish;
  }
  bool hot() const { return has(kOnion) || has(kFish) || has(kMushroom) || has(kEgg); }

  std::string chop() {
    return step(random_.below(2) ? "chop" : "slice",
                some({kOnion, kTomato, kCarrot, kMushroom, kChili}));
  }
  std::string boil() const { return step("boil", some({kCarrot, kPea}), " for ten minutes"); }
  std::string beat() const { return step("beat", some({kEgg}), " with salt"); }
  // The onion always goes first into the pan.
  std::string fry() const {
    const std::string rest = some({kFish, kMushroom, kEgg});
    if (!has(kOnion)) return step("fry", rest, " in oil");
    return rest.empty() ? "fry the onion in oil" : "fry the onion in oil then add " + rest;
  }
  std::string top() const { return step("grate", some({kCheese}), " on top"); }

  const std::vector<int64_t> has_;
  Random random_;
};

}  // namespace

const std::string& ingredient_name(int64_t ingredient) {
  return kIngredientNames.at(static_cast<size_t>(ingredient));
}

Recipe recipe_of(const std::vector<int64_t>& ingredients, const std::string& plate, uint64_t seed) {
  std::vector<int64_t> sorted = ingredients;
  std::sort(sorted.begin(), sorted.end());
  return Grammar(sorted, seed).recipe(plate);
}

}  // namespace fovea::data
