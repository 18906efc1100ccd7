#include "systems/show_attend_tell/encoder.h"

#include <torch/torch.h>

namespace fovea::systems::show_attend_tell {
namespace {

constexpr int64_t kFirst = 32;  // channels

// The row and the column of each region, from -1 to 1: [regions, 2].
torch::Tensor rows_and_columns(int64_t grid, const torch::TensorOptions& options) {
  const torch::Tensor step = torch::linspace(-1, 1, grid, options);
  return torch::stack({step.repeat_interleave(grid), step.repeat({grid})}, 1);
}

}  // namespace

EncoderImpl::EncoderImpl(const RegionShape& shape) : shape_(shape) {
  if (shape.side == 0) {
    mean_ = register_buffer("mean", torch::zeros({shape.array_width}));
    deviation_ = register_buffer("deviation", torch::ones({1}));
    return;
  }
  const auto conv = [](int64_t from, int64_t to) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, 3).padding(1).bias(false));
  };
  conv1_ = register_module("conv1", conv(3, kFirst));
  norm1_ = register_module("norm1", torch::nn::BatchNorm2d(kFirst));
  conv2_ = register_module("conv2", conv(kFirst, shape.channels));
  norm2_ = register_module("norm2", torch::nn::BatchNorm2d(shape.channels));
  conv3_ = register_module("conv3", conv(shape.channels, shape.channels));
  norm3_ = register_module("norm3", torch::nn::BatchNorm2d(shape.channels));
}

void EncoderImpl::standardise(const torch::Tensor& mean, double deviation) {
  const torch::NoGradGuard no_grad;
  mean_.copy_(mean);
  deviation_.fill_(deviation);
}

torch::Tensor EncoderImpl::forward(const torch::Tensor& pictures) {
  if (shape_.side == 0) return (pictures - mean_) / deviation_;
  torch::Tensor x = torch::max_pool2d(torch::relu(norm1_(conv1_(pictures))), 2);
  x = torch::relu(norm2_(conv2_(x)));
  x = std::get<0>(torch::adaptive_max_pool2d(x, {shape_.grid, shape_.grid}));
  x = torch::relu(norm3_(conv3_(x))).flatten(2).transpose(1, 2);  // [items, regions, channels]
  const torch::Tensor where = rows_and_columns(shape_.grid, x.options());
  return torch::cat({x, where.expand({x.size(0), -1, -1})}, 2);
}

}  // namespace fovea::systems::show_attend_tell
