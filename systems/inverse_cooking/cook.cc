#include "systems/inverse_cooking/cook.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <utility>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/pictures/picture_questions.h"
#include "systems/image_to_set/targets.h"
#include "systems/inverse_cooking/dishes.h"

namespace fovea::systems::inverse_cooking {
namespace {

Memory memory_of(const Cook& cook, const Dish& dish) {
  if (cook.side == 0) return cook.model.titles({cook.titles.ids(dish.words)});
  return cook.model.pictures(
      image_to_set::pixels_of({&dish.pixels}, cook.side).to(cook.run_options.device));
}

}  // namespace

Dish pictured(const std::string& path, int64_t side) {
  data::Image image = data::PictureStore("", side).whole(path);
  std::vector<uint8_t> pixels = data::scaled(image, side).pixels;
  return {
      .name = path, .pixels = std::move(pixels), .image = data::shrunk(std::move(image), kLongest)};
}
Dish titled(const std::string& input, size_t number, std::string_view line) {
  const size_t tab = line.find('\t');
  data::Recipe recipe{.ingredients = {}};
  recipe.title = data::trimmed(tab == std::string_view::npos ? line : line.substr(tab + 1));
  if (tab != std::string_view::npos) recipe.kind = data::trimmed(line.substr(0, tab));
  if (recipe.title.empty() && recipe.kind.empty())
    throw data::FileError(input, number, "a blank line, expected a title, or class<TAB>title");
  return {.name = recipe.title.empty() ? recipe.kind : recipe.title, .words = title_words(recipe)};
}

ShownRecipe Cook::cooked(const Dish& dish) const {
  const Memory seen = memory_of(*this, dish);
  const image_to_set::Named said = model.predictor().name(seen).front();
  ShownRecipe out{.name = dish.name,
                  .ingredients = labels.names_of(said.labels),
                  .probabilities = said.probabilities,
                  .is_known = dish.expected != nullptr,
                  .image = dish.image,
                  .grid = run_options.options.integer("grid"),
                  .looked_at = dish.words,
                  .fusion = run_options.options.text("fusion")};
  if (dish.expected) out.expected = *dish.expected;
  out.set_weights = model.predictor().weights_of(seen, said.labels);
  if (!model.writes()) return out;
  const Kitchen from{seen, model.writer().list_of({said.labels}, run_options.device)};
  const Ids written = model.writer().write(from).front();
  const Told told = codec.told(written);
  out.title = told.title;
  out.steps = told.steps;
  size_t step = 0;
  for (const int64_t id : written)
    out.words.push_back(codec.is_mark(id) ? fmt::format("{}.", ++step) : codec.word(id));
  out.weights = model.writer().weights_of(from, written);
  return out;
}

}  // namespace fovea::systems::inverse_cooking
