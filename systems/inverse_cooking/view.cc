#include "systems/inverse_cooking/view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>

#include "train/task.h"

namespace fovea::systems::inverse_cooking {
namespace {

explain::Explanation begun(const std::string& title) {
  explain::Explanation out;
  out.title = title;
  out.score = "scaled dot";
  out.normaliser = "softmax per head";
  out.scale = "1/√(width / heads)";
  return out;
}

// Maps of each layer, in the mean of its heads; the last layer first shown.
void add_maps(explain::Explanation& out, const std::vector<torch::Tensor>& of_layers) {
  out.layers.names.clear();
  out.heads.names = {"mean"};
  for (size_t i = 0; i < of_layers.size(); ++i) {
    out.layers.names.push_back(std::to_string(i + 1));
    out.maps.push_back({static_cast<int>(i), 0, to_floats(of_layers[i]), {}});
  }
  out.layers.chosen = static_cast<int>(of_layers.size()) - 1;
}

void add_regions(explain::Explanation& out, int64_t grid) {
  const double share = 1 / static_cast<double>(grid);
  for (int64_t cell = 0; cell < grid * grid; ++cell) {
    explain::Item& item = out.keys.emplace_back();
    item.text = fmt::format("row {}, column {}", cell / grid + 1, cell % grid + 1);
    item.position = {static_cast<double>(cell % grid) * share,
                     static_cast<double>(cell / grid) * share, share, share};
  }
}

void add_page(explain::Explanation& out, const ShownRecipe& shown) {
  explain::Table ingredients{.title = "Ingredients", .columns = {"ingredient", "p"}, .rows = {}};
  if (shown.is_known) ingredients.columns.emplace_back("in truth");
  const auto in = [](const std::vector<std::string>& list, const std::string& one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  };
  for (size_t i = 0; i < shown.ingredients.size(); ++i) {
    auto& row = ingredients.rows.emplace_back();
    row = {shown.ingredients[i], fmt::format("{:.2f}", shown.probabilities[i])};
    if (shown.is_known) row.emplace_back(in(shown.expected, shown.ingredients[i]) ? "yes" : "no");
  }
  for (const std::string& one : shown.expected)
    if (!in(shown.ingredients, one)) ingredients.rows.push_back({one, "not predicted", "yes"});
  out.tables.push_back(std::move(ingredients));
  if (shown.steps.empty()) return;
  explain::Table steps{.title = "Steps", .columns = {"", "step"}, .rows = {}};
  for (size_t i = 0; i < shown.steps.size(); ++i)
    steps.rows.push_back({fmt::format("{}.", i + 1), shown.steps[i]});
  out.tables.push_back(std::move(steps));
}

// The ingredients, each with where it was seen.
explain::Explanation of_set(const ShownRecipe& shown) {
  explain::Explanation out = begun(shown.name);
  out.structure = shown.is_pictured() ? "the picture's regions" : "the title's words";
  out.view = shown.is_pictured() ? explain::View::kImage : explain::View::kMatrix;
  out.query_label = "ingredient";
  out.key_label = shown.is_pictured() ? "region" : "word of the title";
  for (size_t i = 0; i < shown.ingredients.size(); ++i)
    out.queries.emplace_back().text = shown.ingredients[i];
  if (shown.is_pictured())
    add_regions(out, shown.grid);
  else
    for (const std::string& word : shown.looked_at) out.keys.emplace_back().text = word;
  if (out.keys.empty()) out.keys.emplace_back().text = "no word";
  std::vector<torch::Tensor> means;
  for (const torch::Tensor& layer : shown.set_weights) means.push_back(layer.mean(0));
  if (means.empty()) {
    out.queries.emplace_back().text = "no ingredient";
    out.notes.emplace_back("An empty set: no ingredient looked anywhere.");
    means.push_back(torch::zeros({1, static_cast<int64_t>(out.keys.size())}));
  }
  add_maps(out, means);
  return out;
}

// Where each word of the recipe looked in the picture.
explain::Explanation of_words(const ShownRecipe& shown) {
  explain::Explanation out = begun(shown.title.empty() ? "No title" : shown.title);
  out.view = explain::View::kImage;
  out.structure = "the picture's regions and the ingredients, " + shown.fusion;
  out.query_label = "word";
  out.key_label = "region";
  for (const std::string& word : shown.words) out.queries.emplace_back().text = word;
  add_regions(out, shown.grid);
  std::vector<torch::Tensor> means;
  for (const torch::Tensor& layer : shown.weights)
    means.push_back(layer.mean(0).slice(1, 0, shown.grid * shown.grid).contiguous());
  add_maps(out, means);
  out.notes.push_back("What is missing to 1 lies on the list of ingredients.");
  return out;
}

// The same words: how much lay on the picture, and how much on each ingredient.
explain::Explanation of_split(const ShownRecipe& shown) {
  const int64_t regions =
      shown.is_pictured() ? shown.grid * shown.grid : static_cast<int64_t>(shown.looked_at.size());
  const std::string source = shown.is_pictured() ? "picture" : "title";
  explain::Explanation out = begun(fmt::format(
      "{}: {} or list, word by word", shown.title.empty() ? shown.name : shown.title, source));
  out.view = explain::View::kMatrix;
  out.structure = fmt::format("{} and list, {}", source, shown.fusion);
  out.query_label = "word";
  out.key_label = "looked at";
  for (const std::string& word : shown.words) out.queries.emplace_back().text = word;
  out.keys.emplace_back().text = "the " + source;
  for (const std::string& one : shown.ingredients) out.keys.emplace_back().text = one;
  std::vector<torch::Tensor> means;
  const auto listed = static_cast<int64_t>(shown.ingredients.size());
  for (const torch::Tensor& layer : shown.weights) {
    const torch::Tensor mean = layer.mean(0);
    means.push_back(
        torch::cat({mean.slice(1, 0, regions).sum(1, true),
                    mean.slice(1, mean.size(1) - std::max<int64_t>(1, listed), mean.size(1))
                        .slice(1, 0, listed)},
                   1)
            .contiguous());
  }
  add_maps(out, means);
  if (shown.fusion != "concatenated")
    out.notes.push_back(
        "Picture and list have an attention each, so that each has half of the weight.");
  return out;
}

}  // namespace

std::vector<explain::Explanation> pictures(const ShownRecipe& shown) {
  std::vector<explain::Explanation> out;
  const bool drawn = shown.is_pictured();
  const auto add_picture = [&](explain::Explanation& to) {
    to.picture = explain::Picture{static_cast<int>(shown.image.width),
                                  static_cast<int>(shown.image.height), 3, shown.image.pixels};
  };
  out.push_back(drawn && !shown.weights.empty() ? of_words(shown) : of_set(shown));
  if (drawn) add_picture(out.front());
  out.front().outcome = shown.ingredients.empty()
                            ? "no ingredients"
                            : fmt::format("{}", fmt::join(shown.ingredients, ", "));
  add_page(out.front(), shown);
  if (!shown.weights.empty()) out.push_back(of_split(shown));
  return out;
}

}  // namespace fovea::systems::inverse_cooking
