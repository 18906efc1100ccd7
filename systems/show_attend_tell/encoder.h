// What becomes of a picture before it is looked at: regions a_i.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

namespace fovea::systems::show_attend_tell {

struct RegionShape {
  int64_t side = 0;         // of pictures in pixels; 0: arrays of regions come from elsewhere
  int64_t grid = 7;         // pictures: regions are grid x grid
  int64_t channels = 64;    // pictures: of the last convolution
  int64_t array_width = 0;  // arrays: numbers of a region
  int64_t count = 49;       // regions
  int64_t width() const { return side > 0 ? channels + 2 : array_width; }
};

// Pictures: three convolutions, learnt with the decoder, and each region's row and column. Arrays: as
// they are, less their mean and divided by their deviation.
class EncoderImpl : public torch::nn::Module {
 public:
  explicit EncoderImpl(const RegionShape& shape);
  torch::Tensor forward(const torch::Tensor& pictures);  // [items, regions, width]
  // Of arrays, from what training has: mean of each number, one deviation of all.
  void standardise(const torch::Tensor& mean, double deviation);

 private:
  const RegionShape shape_;
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr}, conv3_{nullptr};
  torch::nn::BatchNorm2d norm1_{nullptr}, norm2_{nullptr}, norm3_{nullptr};
  torch::Tensor mean_, deviation_;  // buffers
};
TORCH_MODULE(Encoder);

}  // namespace fovea::systems::show_attend_tell
