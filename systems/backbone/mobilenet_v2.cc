#include "systems/backbone/mobilenet_v2.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "data/files/file.h"

namespace fovea::systems::backbone {
namespace {

using Kind = data::QuantisedOperator::Kind;

// Whole numbers kept as floats: a product of two bytes and sums of thousands of them are exact or nearly so,
// and libtorch's convolutions are fast.
torch::Tensor kernel_of(const data::QuantisedOperator& one) {
  const std::vector<int64_t>& w = one.weight_shape;
  const torch::Tensor numbers =
      torch::from_blob(const_cast<uint8_t*>(one.weights.data()), w, torch::kUInt8)
          .to(torch::kFloat32) -
      static_cast<double>(one.weight_zero);
  return one.kind == Kind::kDepthwise ? numbers.permute({3, 0, 1, 2}).contiguous()
                                      : numbers.permute({0, 3, 1, 2}).contiguous();
}

// As TensorFlow pads: what is odd goes to the bottom and to the right. Zero is the input's own zero, which
// has been taken off.
torch::Tensor padded(const torch::Tensor& x, const std::vector<int64_t>& kernel, int64_t stride) {
  const auto needed = [&](int64_t size, int64_t taps) {
    return std::max<int64_t>(0, ((size + stride - 1) / stride - 1) * stride + taps - size);
  };
  const int64_t down = needed(x.size(2), kernel[1]), across = needed(x.size(3), kernel[2]);
  if (down == 0 && across == 0) return x;
  return torch::constant_pad_nd(x, {across / 2, across - across / 2, down / 2, down - down / 2}, 0);
}

// From real numbers to the 8-bit numbers of an output; the clamp is the ReLU6.
torch::Tensor quantised(const torch::Tensor& real, const data::QuantisedTensor& out) {
  return (real / out.scale).round_().add_(static_cast<double>(out.zero)).clamp_(0, 255);
}

}  // namespace

MobileNetV2::MobileNetV2(const std::string& folder)
    : MobileNetV2(data::read_quantised_network(folder)) {
  if (network_.in.height != network_.in.width || network_.in.channels != 3)
    throw data::FileError(folder, 0, "a network of another input, expected side x side x 3");
  const std::filesystem::path labels = std::filesystem::path(folder) / "imagenet_labels.txt";
  if (std::filesystem::exists(labels)) classes_ = data::read_class_names(labels.string());
}

MobileNetV2::MobileNetV2(data::QuantisedNetwork network) : network_(std::move(network)) {
  features_ = network_.operators.size();
  for (size_t i = 0; i < network_.operators.size(); ++i) {
    const data::QuantisedOperator& one = network_.operators[i];
    Weights& to = weights_.emplace_back();
    if (one.kind == Kind::kMeanPool && features_ == network_.operators.size() && i > 0)
      features_ = i - 1;
    if (one.weights.empty()) continue;
    to.kernel = kernel_of(one);
    to.bias = torch::from_blob(const_cast<int32_t*>(one.biases.data()),
                               {static_cast<int64_t>(one.biases.size())}, torch::kInt32)
                  .to(torch::kFloat32);
  }
  if (features_ == network_.operators.size())
    throw InvalidArgument("backbone: no AVGPOOL, expected the features' mean before the classes");
}

torch::Tensor MobileNetV2::run(const torch::Tensor& pictures, size_t last) const {
  const torch::NoGradGuard no_grad;
  struct Value {
    torch::Tensor numbers;  // [items, channels, height, width]
    data::QuantisedTensor of;
  };
  std::map<int64_t, Value> values;
  // How often each output is still read: those no longer needed are let go.
  std::map<int64_t, int> readers;
  for (size_t i = 0; i <= last; ++i)
    for (const int64_t input : network_.operators[i].inputs) ++readers[input];
  values[network_.input] = {pictures.permute({0, 3, 1, 2}).to(torch::kFloat32).contiguous(),
                            network_.in};
  torch::Tensor out;
  for (size_t i = 0; i <= last; ++i) {
    const data::QuantisedOperator& one = network_.operators[i];
    const auto centred = [&](size_t k) {
      const Value& value = values.at(one.inputs[k]);
      return value.numbers - static_cast<double>(value.of.zero);
    };
    const double scale = values.at(one.inputs[0]).of.scale;
    torch::Tensor real;
    if (one.kind == Kind::kAdd) {
      real = centred(0) * scale + centred(1) * values.at(one.inputs[1]).of.scale;
    } else if (one.kind == Kind::kMeanPool) {
      real = centred(0).mean(at::IntArrayRef{2, 3}, true) * scale;
    } else {
      const int64_t groups = one.kind == Kind::kDepthwise ? one.out.channels : 1;
      real = torch::conv2d(padded(centred(0), one.weight_shape, one.stride), weights_[i].kernel,
                           weights_[i].bias, at::IntArrayRef{one.stride, one.stride},
                           at::IntArrayRef{0, 0}, at::IntArrayRef{1, 1}, groups) *
             (scale * one.weight_scale);
    }
    out = quantised(real, one.out);
    values[one.output] = {out, one.out};
    for (const int64_t input : one.inputs)
      if (--readers[input] == 0) values.erase(input);
  }
  return out;
}

torch::Tensor MobileNetV2::features(const torch::Tensor& pictures) const {
  return run(pictures, features_).flatten(2).transpose(1, 2).to(torch::kUInt8).contiguous();
}

torch::Tensor MobileNetV2::scores(const torch::Tensor& pictures) const {
  const data::QuantisedTensor& of = network_.operators.back().out;
  return (run(pictures, network_.operators.size() - 1).flatten(1) - static_cast<double>(of.zero)) *
         of.scale;
}

torch::Tensor squashed(const data::Image& picture, int64_t side) {
  const torch::Tensor pixels =
      torch::from_blob(const_cast<uint8_t*>(picture.pixels.data()),
                       {1, picture.height, picture.width, picture.channels}, torch::kUInt8);
  torch::Tensor x = pixels.permute({0, 3, 1, 2}).to(torch::kFloat32).contiguous();
  if (picture.channels == 1) x = x.expand({-1, 3, -1, -1}).contiguous();
  x = torch::_upsample_bilinear2d_aa(x, {side, side}, /*align_corners=*/false);
  return x.round().clamp(0, 255).to(torch::kUInt8).permute({0, 2, 3, 1}).contiguous();
}

}  // namespace fovea::systems::backbone
