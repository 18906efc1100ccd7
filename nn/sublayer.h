// The ends of a Transformer's sublayers, each as one autograd node: product, bias, dropout, residual
// and layer norm share their passes over memory, and no mask is stored. On the CPU, for float and
// double; otherwise libtorch's operations are called one by one.
#pragma once

#include <torch/nn.h>

#include "fovea/nn/layers.h"
#include "nn/products/product.h"

namespace fovea::nn {

// x W' + b, whatever module stores the numbers.
struct Affine {
  Affine(at::Tensor weight, at::Tensor bias) : weight(std::move(weight)), bias(std::move(bias)) {}
  Affine(const torch::nn::Linear& linear)  // NOLINT: a linear layer is one
      : weight(linear->weight), bias(linear->bias) {}
  at::Tensor operator()(const at::Tensor& x) const { return projected(x, weight, bias); }

  at::Tensor weight, bias;  // [outputs, inputs], [outputs]
};

// norm(x + dropout(linear(y))). Shapes [..., width]; dropout is the probability to drop, 0 when not
// training.
at::Tensor project_add_norm(const at::Tensor& x, const at::Tensor& y, const Affine& linear,
                            torch::nn::LayerNorm& norm, double dropout);

// norm(x + dropout(out(dropout(relu(in(x)))))).
at::Tensor feed_forward_add_norm(const at::Tensor& x, const Affine& in, const Affine& out,
                                 torch::nn::LayerNorm& norm, double dropout);

// A sublayer that moves information between positions, with its residual and its norm in either
// order; `mix` gives what the output projection `out` takes.
template <class Mix>
at::Tensor mixing_sublayer(const at::Tensor& x, const Affine& out, torch::nn::LayerNorm& norm,
                           NormOrder order, double dropout, Mix mix) {
  if (order == NormOrder::kPost) return project_add_norm(x, mix(x), out, norm, dropout);
  return x + at::dropout(out(mix(norm(x))), dropout, dropout > 0);
}

// The feed-forward net, in the same way.
at::Tensor feed_forward_sublayer(const at::Tensor& x, const Affine& in, const Affine& out,
                                 torch::nn::LayerNorm& norm, NormOrder order, double dropout);

}  // namespace fovea::nn
