#include "systems/deep_sets/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "systems/pooling/pooling.h"

namespace fovea::systems::deep_sets {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Linear;
using torch::nn::LinearOptions;

torch::Tensor sum_of(const torch::Tensor& values, const torch::Tensor& offsets) {
  return pooling::pool("sum", values.to(torch::kFloat64), offsets).to(values.scalar_type());
}

torch::Tensor whole_set(const torch::Tensor& elements) {
  return torch::tensor({int64_t{0}, elements.size(0)}, torch::kInt32).to(elements.device());
}

Equivariant::Equivariant(int64_t inputs, int64_t outputs, std::string pool)
    : pool_(std::move(pool)) {
  lambda_ = register_module("lambda", Linear(inputs, outputs));
  gamma_ = register_module("gamma", Linear(LinearOptions(inputs, outputs).bias(false)));
}

torch::Tensor Equivariant::forward(const torch::Tensor& x, const torch::Tensor& offsets) {
  const torch::Tensor whole = gamma_(pooling::pool(pool_, x, offsets));  // [sets, outputs]
  return torch::tanh(lambda_(x) - whole.index_select(0, data::owners(offsets)));
}

DigitFeatures::DigitFeatures(int64_t side, int64_t filters, int64_t width)
    : side_(side), width_(width) {
  const auto after_pool = [](int64_t s) { return (s - 4) / 2; };
  const int64_t left = after_pool(after_pool(side));
  TORCH_CHECK(left >= 1, "side: ", side, ", expected at least 16");
  conv1_ = register_module("conv1", Conv2d(Conv2dOptions(1, filters, 5)));
  conv2_ = register_module("conv2", Conv2d(Conv2dOptions(filters, 2 * filters, 5)));
  fc1_ = register_module("fc1", Linear(2 * filters * left * left, 4 * width));
  fc2_ = register_module("fc2", Linear(4 * width, width));
}

torch::Tensor DigitFeatures::forward(const torch::Tensor& pictures) {
  if (pictures.size(0) == 0) return torch::zeros({0, width_}, pictures.options());
  torch::Tensor x = pictures.view({-1, 1, side_, side_});
  x = torch::max_pool2d(torch::relu(conv1_(x)), 2);
  x = torch::max_pool2d(torch::relu(conv2_(x)), 2);
  return torch::tanh(fc2_(torch::relu(fc1_(x.flatten(1)))));
}

DigitSum::DigitSum(const Shape& shape) : shape_(shape) {
  phi_ = register_module("phi",
                         std::make_shared<DigitFeatures>(shape.side, shape.filters, shape.width));
  if (shape.rho == "mlp") rho1_ = register_module("rho1", Linear(shape.width, shape.width));
  rho2_ = register_module("rho2", Linear(LinearOptions(shape.width, 1).bias(shape.rho == "mlp")));
  if (shape.rho == "linear") {
    // The bias starts at the mean digit for each element. From zero, the features would first all
    // saturate to reach the scale of sums.
    const torch::NoGradGuard guard;
    const double each = 4.5 / static_cast<double>(shape.width);
    rho2_->weight.copy_(each + 2 * each * torch::randn_like(rho2_->weight));
    rho2_->weight.add_(each - rho2_->weight.mean());
  }
  gru_ = register_module(
      "gru", nn::Recurrent(nn::RecurrentOptions{
                 .input = shape.width, .width = shape.recurrent, .bidirectional = false}));
  read_ = register_module("read", Linear(shape.recurrent, 1));
}

// tanh features are centred. φ + 1 starts from 0, so that the empty set sums to zero and each
// element adds its own part.
torch::Tensor DigitSum::rho(const torch::Tensor& pooled) {
  return rho2_(rho1_ ? torch::relu(rho1_(pooled)) : pooled).squeeze(-1);
}

torch::Tensor DigitSum::sums(const torch::Tensor& features, const torch::Tensor& offsets) {
  return rho(sum_of(features + 1, offsets));
}

torch::Tensor DigitSum::gru_sums(const torch::Tensor& features, const torch::Tensor& offsets) {
  const torch::Tensor ends = offsets.to(torch::kInt64), lengths = ends.diff();
  const int64_t longest = lengths.numel() ? lengths.max().item<int64_t>() : 0;
  if (longest == 0) return torch::zeros({lengths.numel()}, features.options());
  // A padded step reads some element, but its result is not used: packed sequences end where the
  // set does.
  const torch::Tensor steps = torch::arange(longest, ends.options()).unsqueeze(0);
  const torch::Tensor index = (ends.slice(0, 0, -1).unsqueeze(1) +
                               torch::minimum(steps, (lengths.unsqueeze(1) - 1).clamp_min(0)))
                                  .clamp_max(features.size(0) - 1);
  const torch::Tensor padded =
      features.index_select(0, index.flatten()).view({lengths.numel(), longest, -1});
  return read_(gru_->forward(padded, lengths.clamp_min(1)).forward).squeeze(-1);
}

torch::Tensor DigitSum::contributions(const torch::Tensor& features) {
  return rho(features + 1) - rho(torch::zeros_like(features));
}

CloudClassifier::CloudClassifier(int64_t width, int64_t classes, const std::string& pool,
                                 double dropout)
    : dropout_(dropout) {
  for (int64_t i = 0; i < 3; ++i)
    layers_.push_back(register_module(fmt::format("layer{}", i + 1),
                                      std::make_shared<Equivariant>(i ? width : 3, width, pool)));
  hidden_ = register_module("hidden", Linear(width, width));
  out_ = register_module("out", Linear(width, classes));
}

torch::Tensor CloudClassifier::points(const data::Packed& clouds) {
  torch::Tensor x = clouds.values;
  for (const auto& layer : layers_) x = layer->forward(x, clouds.offsets);
  return x;
}

torch::Tensor CloudClassifier::forward(const data::Packed& clouds) {
  const torch::Tensor pooled =
      torch::dropout(pooling::pool("max", points(clouds), clouds.offsets), dropout_, is_training());
  return out_(torch::dropout(torch::tanh(hidden_(pooled)), dropout_, is_training()));
}

}  // namespace fovea::systems::deep_sets
