// The ends of a Transformer's sublayers, each as one autograd node: product, bias, dropout, residual
// and layer norm share their passes over memory, and no mask is stored. On the CPU, for float and
// double; otherwise libtorch's operations are called one by one.
#pragma once

#include <torch/nn.h>

namespace fovea::nn {

// norm(x + dropout(linear(y))). Shapes [..., width]; dropout is the probability to drop, 0 when not
// training.
at::Tensor project_add_norm(const at::Tensor& x, const at::Tensor& y, torch::nn::Linear& linear,
                            torch::nn::LayerNorm& norm, double dropout);

// norm(x + dropout(out(dropout(relu(in(x)))))).
at::Tensor feed_forward_add_norm(const at::Tensor& x, torch::nn::Linear& in, torch::nn::Linear& out,
                                 torch::nn::LayerNorm& norm, double dropout);

}  // namespace fovea::nn
