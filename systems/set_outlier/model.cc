#include "systems/set_outlier/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <limits>

#include "fovea/attend.h"

namespace fovea::systems::set_outlier {

OutlierModel::OutlierModel(const Shape& shape) {
  phi_ = register_module(
      "phi", std::make_shared<deep_sets::DigitFeatures>(shape.side, shape.filters, shape.width));
  for (int64_t i = 0; i < 2; ++i)
    layers_.push_back(
        register_module(fmt::format("layer{}", i + 1),
                        std::make_shared<deep_sets::Equivariant>(i ? 2 * shape.width : shape.width,
                                                                 2 * shape.width, shape.pool)));
  out_ = register_module("out", torch::nn::Linear(2 * shape.width, 1));
}

torch::Tensor OutlierModel::forward(const data::Packed& sets) {
  torch::Tensor x = phi_->forward(sets.values);
  for (const auto& layer : layers_) x = layer->forward(x, sets.offsets);
  return out_(x).squeeze(-1);
}

torch::Tensor OutlierModel::weights_of(const torch::Tensor& scores, const torch::Tensor& offsets) {
  const torch::Tensor key = scores.view({-1, 1, 1}), ends = offsets.cpu();
  std::vector<torch::Tensor> out;
  for (int64_t i = 0; i + 1 < ends.size(0); ++i) {
    const int64_t from = ends[i].item<int64_t>(), to = ends[i + 1].item<int64_t>();
    if (from == to) continue;
    const torch::Tensor own =
        torch::tensor({int64_t{0}, to - from}, torch::kInt32).to(key.device());
    out.push_back(
        weights(torch::ones({1, 1, 1}, key.options()), key.slice(0, from, to),
                {.score = Dot{1.0}, .structure = Ragged{data::one_each(1, key.device()), own}})
            .weights.flatten());
  }
  return out.empty() ? torch::zeros({0}) : torch::cat(out);
}

ExpansionModel::ExpansionModel(int64_t things, int64_t width) {
  phi_ = register_parameter("phi", torch::randn({things, width}) * 0.1);
  linear_ = register_parameter("linear", torch::zeros({width}));
}

torch::Tensor ExpansionModel::summed(const torch::Tensor& things, const torch::Tensor& offsets) {
  return deep_sets::sum_of(phi_.index_select(0, things), offsets);
}

torch::Tensor ExpansionModel::value(const torch::Tensor& things, const torch::Tensor& offsets) {
  const torch::Tensor u = summed(things, offsets);
  return u.square().sum(1) / 2 + u.matmul(linear_);
}

torch::Tensor ExpansionModel::gains(const torch::Tensor& things, const torch::Tensor& offsets) {
  return (summed(things, offsets) + linear_).matmul(phi_.t()) + phi_.square().sum(1) / 2;
}

torch::Tensor margin_loss(const torch::Tensor& scores, const torch::Tensor& target,
                          const torch::Tensor& excluded, int64_t hard,
                          const torch::Tensor& margin) {
  const torch::Tensor own = scores.gather(1, target.unsqueeze(1));
  const torch::Tensor rivals =
      scores.masked_fill(excluded, -std::numeric_limits<float>::infinity())
          .scatter(1, target.unsqueeze(1), -std::numeric_limits<float>::infinity());
  const torch::Tensor violated = rivals - own + margin;
  const torch::Tensor hardest = std::get<0>(violated.topk(std::min(hard, rivals.size(1) - 1), 1));
  return torch::relu(hardest).mean();  // relu's slope at 0 is 0
}

torch::Tensor company_margin(const std::vector<std::vector<int64_t>>& sets, int64_t things) {
  torch::Tensor both = torch::zeros({things, things});
  auto at = both.accessor<float, 2>();
  for (const std::vector<int64_t>& set : sets)
    for (const int64_t a : set)
      for (const int64_t b : set) at[a][b] += 1;
  const torch::Tensor alone = both.diagonal();
  const torch::Tensor either = alone.unsqueeze(0) + alone.unsqueeze(1) - both;
  torch::Tensor margin = 1 - both / either.clamp_min(1);
  margin.fill_diagonal_(0);
  return margin;
}

}  // namespace fovea::systems::set_outlier
