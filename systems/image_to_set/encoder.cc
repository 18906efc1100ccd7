#include "systems/image_to_set/encoder.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>

namespace fovea::systems::image_to_set {
namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;

constexpr size_t kHalvings = 2;  // after the first convolutions; the others keep the size

}  // namespace

Encoder::Encoder(const Sight& sight) : sight_(sight) {
  if (sight.inputs > 0) {
    project_ = register_module("project", torch::nn::Linear(sight.inputs, sight.width));
  } else {
    const int64_t channels[] = {3, sight.filters, 2 * sight.filters, 2 * sight.filters,
                                sight.width};
    for (size_t i = 0; i + 1 < std::size(channels); ++i) {
      convolutions_.push_back(register_module(
          fmt::format("conv{}", i + 1),
          Conv2d(Conv2dOptions(channels[i], channels[i + 1], 3).padding(1).bias(false))));
      norms_.push_back(register_module(fmt::format("bn{}", i + 1), BatchNorm2d(channels[i + 1])));
    }
  }
  norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({sight.width})));
}

Memory Encoder::forward(const torch::Tensor& seen) {
  if (project_) return {.keys = torch::relu(norm_(project_(seen)))};
  torch::Tensor x = seen;
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    x = torch::relu(norms_[i](convolutions_[i](x)));
    if (i < kHalvings && std::min(x.size(2), x.size(3)) > 1) x = torch::max_pool2d(x, 2);
  }
  x = torch::adaptive_avg_pool2d(x, {sight_.grid, sight_.grid});
  return {.keys = norm_(x.flatten(2).transpose(1, 2).contiguous())};
}

torch::Tensor pixels_of(const std::vector<const std::vector<uint8_t>*>& pictures, int64_t side) {
  const auto items = static_cast<int64_t>(pictures.size());
  const torch::Tensor bytes = torch::empty({items, side, side, 3}, torch::kUInt8);
  for (int64_t i = 0; i < items; ++i)
    std::copy(pictures[static_cast<size_t>(i)]->begin(), pictures[static_cast<size_t>(i)]->end(),
              bytes.data_ptr<uint8_t>() + i * side * side * 3);
  return bytes.permute({0, 3, 1, 2}).to(torch::kFloat32).contiguous() / 127.5 - 1;
}

}  // namespace fovea::systems::image_to_set
