#include "systems/transformer/view.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "fovea/nn/transformer.h"
#include "train/descent/recipe.h"

namespace fovea::systems {
namespace {

explain::Explanation described(const std::string& title) {
  explain::Explanation e;
  e.system = "transformer";
  e.title = title;
  e.score = "scaled dot";
  e.normaliser = "softmax";
  e.structure = "dense, causal, cross";
  e.scale = "1/√(width / heads)";
  return e;
}

// The similarity of two positions as a dot product: the encoding makes near positions similar, and
// only the distance matters.
explain::Explanation positions(int64_t width) {
  constexpr int64_t kShown = 64;
  const at::Tensor table = nn::position_encoding(kShown, width);
  const at::Tensor alike =
      (at::mm(table, table.t()) / (static_cast<double>(width) / 2)).contiguous();
  explain::Explanation e = described("Position encoding: how alike two positions are");
  e.view = explain::View::kMatrix;
  e.score = "dot product of two encodings";
  e.normaliser = "none";
  e.structure = "dense";
  e.scale = "2 / width";
  e.query_label = e.key_label = "position";
  for (int64_t i = 0; i < kShown; ++i) {
    explain::Item item;
    item.text = std::to_string(i);
    e.queries.push_back(item);
    e.keys.push_back(item);
  }
  const float* first = alike.const_data_ptr<float>();
  e.maps.push_back({0, 0, {first, first + alike.numel()}, {}});
  return e;
}

// The course of the schedule after its warm-up, in words; empty for schedules that change with
// epochs, whose length in steps is not known here.
std::string after_warm_up(const train::Recipe& recipe) {
  if (recipe.schedule == "constant") return "stays";
  if (recipe.schedule == "cosine") return "falls along a cosine to zero";
  if (recipe.schedule == "inverse_sqrt") return "falls as one over the root of the step";
  if (recipe.schedule == "linear") return "falls along a line to zero";
  return {};
}

explain::Explanation rate_curve(const train::Recipe& recipe) {
  const int64_t last = std::max<int64_t>(4 * recipe.warmup, 400);
  explain::Curve curve;
  curve.label = recipe.schedule;
  for (int64_t step = 1; step <= last; step += std::max<int64_t>(last / 200, 1)) {
    curve.x.push_back(static_cast<double>(step));
    curve.y.push_back(recipe.rate * train::rate_factor(recipe, step, 0, last));
  }
  explain::Plot plot;
  plot.title = "Learning rate";
  plot.x_label = fmt::format("step of a training of {}", last);
  plot.y_label = "rate";
  plot.curves.push_back(curve);
  if (recipe.warmup > 0)
    plot.markers.push_back({"end of warm-up", static_cast<double>(recipe.warmup), -1});
  explain::Explanation e = described((recipe.warmup > 0 ? "The rate rises, then " : "The rate ") +
                                     after_warm_up(recipe));
  e.view = explain::View::kCurve;
  e.plots.push_back(plot);
  return e;
}

}  // namespace

std::vector<explain::Explanation> more_pictures(translate::Model&,
                                                const OptionValues& option_values) {
  std::vector<explain::Explanation> out = {positions(option_values.integer("width"))};
  const train::Recipe recipe = train::recipe_of(option_values);
  if (!after_warm_up(recipe).empty()) out.push_back(rate_curve(recipe));
  return out;
}

}  // namespace fovea::systems
