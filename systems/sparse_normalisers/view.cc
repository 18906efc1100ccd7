#include "systems/sparse_normalisers/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "train/task.h"

namespace fovea::systems::sparse_normalisers {
namespace {

explain::Explanation described(const char* title, explain::View view) {
  explain::Explanation out;
  out.title = title;
  out.view = view;
  out.score = "given";
  out.normaliser = "softmax, 1.5-entmax, sparsemax";
  out.structure = "all";
  out.scale = "1";
  return out;
}

std::string share(const torch::Tensor& of, int64_t row, int64_t column) {
  const double value = of[row][column].item<double>();
  return value < 0 ? "–" : fmt::format("{:.1f} %", 100 * value);
}

}  // namespace

explain::Explanation curves(const Model& model, const std::vector<std::string>& systems) {
  constexpr int64_t kPoints = 121;
  explain::Explanation out = described("Two keys: the weight of the first against how far it leads",
                                       explain::View::kCurve);
  const torch::Tensor lead = torch::linspace(-3, 3, kPoints, torch::kFloat64),
                      scores = torch::stack({lead, torch::zeros_like(lead)}, 1);
  explain::Plot plot{.title = "Sparse normalisers reach 0 and 1, softmax never does",
                     .x_label = "e₁ − e₂",
                     .y_label = "weight of the first key"};
  for (const Compared& normaliser : kCompared) {
    const torch::Tensor weight = weights_of(scores, normaliser).select(1, 0).contiguous();
    explain::Curve& curve = plot.curves.emplace_back();
    curve.label = normaliser.label;
    for (int64_t i = 0; i < kPoints; ++i) {
      curve.x.push_back(lead[i].item<double>());
      curve.y.push_back(weight[i].item<double>());
    }
  }
  out.plots.push_back(std::move(plot));
  explain::Table table{
      .title = "Systems under each: figure, weights that are exactly zero, hit rate",
      .columns = {"system"}};
  for (const Compared& normaliser : kCompared)
    for (const char* what : {"", ", zeros", ", hit rate"})
      table.columns.push_back(std::string(normaliser.label) + what);
  for (size_t s = 0; s < systems.size(); ++s) {
    std::vector<std::string> row = {systems[s]};
    for (size_t n = 0; n < kCompared.size(); ++n)
      for (const torch::Tensor* of : {&model.figures, &model.zeros, &model.hits})
        row.push_back(share(*of, static_cast<int64_t>(s), static_cast<int64_t>(n)));
    table.rows.push_back(std::move(row));
  }
  out.tables.push_back(std::move(table));
  return out;
}

explain::Explanation row_picture(const torch::Tensor& scores) {
  explain::Explanation out =
      described("One row of scores, three normalisers", explain::View::kMatrix);
  out.query_label = "normaliser";
  out.key_label = "score";
  for (const float score : to_floats(scores))
    out.keys.emplace_back().text = fmt::format("{:g}", score);
  std::vector<float>& dense = out.maps.emplace_back().dense;
  for (const Compared& normaliser : kCompared) {
    out.queries.emplace_back().text = normaliser.label;
    const std::vector<float> row = to_floats(weights_of(scores, normaliser));
    dense.insert(dense.end(), row.begin(), row.end());
  }
  return out;
}

}  // namespace fovea::systems::sparse_normalisers
