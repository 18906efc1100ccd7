// RMS norm (Zhang & Sennrich 2019): x / sqrt(mean(x^2) + epsilon) * weight, over the last dimension.
#pragma once

#include <torch/nn.h>

namespace fovea::nn {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon = 1e-5);

class RmsNormImpl : public torch::nn::Cloneable<RmsNormImpl> {
 public:
  explicit RmsNormImpl(int64_t width, double epsilon = 1e-5);
  void reset() override;
  at::Tensor forward(const at::Tensor& x);
  double epsilon() const { return epsilon_; }

  at::Tensor weight;  // [width]

 private:
  int64_t width_;
  double epsilon_;
};
TORCH_MODULE(RmsNorm);

}  // namespace fovea::nn
