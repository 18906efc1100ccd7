// Squeeze-and-excitation (Hu, Shen & Sun 2018): a gate for each channel, from the means of all.
//
//   z_c = mean_ij u_c,   s = σ(W2 ReLU(W1 z)),   x_c = s_c u_c
//
// Gates do not sum to one, and nothing is summed over positions: each channel is multiplied by its
// gate. In a residual block the gate belongs before the addition: x + gate(f(x)).
#pragma once

#include <torch/nn.h>

namespace fovea::nn {

struct SqueezeExciteOptions {
  int64_t channels = 0;
  int64_t reduction = 16;  // r: the hidden layer has channels / r units, at least one
  int64_t units = 0;       // units of the hidden layer, if not channels / r
};

class SqueezeExciteImpl : public torch::nn::Cloneable<SqueezeExciteImpl> {
 public:
  explicit SqueezeExciteImpl(const SqueezeExciteOptions& options);
  void reset() override;

  // u [B, channels, ...] -> the same shape; maps of one, two or three dimensions.
  at::Tensor forward(const at::Tensor& u);
  // The gates before the sigmoid, W2 ReLU(W1 z), and the gates: [B, channels].
  at::Tensor scores(const at::Tensor& u);
  at::Tensor gates(const at::Tensor& u) { return scores(u).sigmoid(); }
  // Maps [B, channels, ...] of any size, each multiplied by its gate: forward(u) is gated(u,
  // scores(u)). Gates are positive, so the maximum over places of what is gated is the gated
  // maximum, which costs less.
  static at::Tensor gated(const at::Tensor& maps, const at::Tensor& scores);

  const SqueezeExciteOptions& options() const { return options_; }

  torch::nn::Linear fc1{nullptr}, fc2{nullptr};  // W1, W2, without biases

 private:
  SqueezeExciteOptions options_;
};
TORCH_MODULE(SqueezeExcite);

}  // namespace fovea::nn
