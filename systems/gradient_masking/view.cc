#include "systems/gradient_masking/view.h"

#include <fmt/format.h>

#include <cmath>

namespace fovea::systems::gradient_masking {

explain::Explanation picture(const torch::Tensor& x) {
  explain::Explanation out;
  out.title = "Gradients through o = a₁x₁ + a₂x₂";
  out.view = explain::View::kGraph;
  out.score = "given";
  out.normaliser = "none: size of the gradient";
  out.structure = "both inputs";
  out.scale = "1";
  out.query_label = "from";
  out.key_label = "to";
  out.notes = {
      "Edge width is the size of the gradient that flows back along it, for a loss gradient of 1 "
      "at every coordinate of o.",
      "At a = (1, 0) x₂ receives nothing and both score gradients are zero. Plain gradient "
      "descent then never moves x₂; an optimiser "
      "with momentum or weight decay would go on moving it, and must leave it out."};
  const char* names[] = {"loss", "o", "x₁", "x₂", "e₁", "e₂"};
  const double positions[][2] = {{0.95, 0.5}, {0.65, 0.5}, {0.15, 0.2},
                                 {0.15, 0.8}, {0.4, 0.1},  {0.4, 0.9}};
  for (size_t i = 0; i < 6; ++i) {
    auto& item = out.queries.emplace_back();
    item.text = names[i];
    item.position = {positions[i][0], positions[i][1]};
    out.keys.push_back(item);
  }
  out.layers = {"e₁ − e₂", {}};
  explain::Plot curve;
  curve.title = "How much a score can still learn";
  curve.x_label = "e₁ − e₂";
  curve.y_label = "gradient";
  explain::Curve measured, formula, direct;
  measured.label = "|∂L/∂e₁|";
  formula.label = "a(1 − a)·gap";
  formula.kind = explain::Curve::Kind::kPoints;
  direct.label = "|∂L/∂x₂| / |∂L/∂o|";
  const torch::Tensor ones = torch::ones({kWidth}, torch::kFloat64);
  const double gap_size = std::abs((x[0] - x[1]).sum().item<double>());
  int layer = 0;
  for (double gap = -10; gap <= 10; gap += 1) {
    const torch::Tensor e = torch::tensor({gap, 0.0}, torch::kFloat64);
    const Gradients g = gradients(x, e, ones);
    const double a = e.softmax(0)[0].item<double>();
    out.layers.names.push_back(fmt::format("{:g}", gap));
    auto& map = out.maps.emplace_back();
    map.layer = layer++;
    map.links = {{0, 1, static_cast<float>(ones.norm().item<double>())},
                 {1, 2, static_cast<float>(g.x[0].norm().item<double>())},
                 {1, 3, static_cast<float>(g.x[1].norm().item<double>())},
                 {1, 4, static_cast<float>(std::abs(g.e[0].item<double>()))},
                 {1, 5, static_cast<float>(std::abs(g.e[1].item<double>()))}};
    measured.x.push_back(gap);
    measured.y.push_back(std::abs(g.e[0].item<double>()));
    formula.x.push_back(gap);
    formula.y.push_back(a * (1 - a) * gap_size);
    direct.x.push_back(gap);
    direct.y.push_back(g.x[1].norm().item<double>() / ones.norm().item<double>());
  }
  out.layers.chosen = layer / 2;  // equal scores
  curve.curves = {measured, formula, direct};
  out.plots.push_back(curve);
  return out;
}

}  // namespace fovea::systems::gradient_masking
