// Products of float matrices on the CPU. libtorch gives them to MKL, which keeps to AVX2 on
// processors of AMD; oneDNN, which libtorch has too, takes AVX-512 there and half the time. All
// else stays with libtorch.
#pragma once

#include <torch/nn.h>

namespace fovea::nn {

// Whether oneDNN multiplies large matrices here.
bool has_one_dnn();

// a b: [m, k] by [k, n]. No gradients: for nodes that have their own.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

// x w' + b, as at::linear, with its gradients. x [..., inputs], weight [outputs, inputs], bias
// [outputs] or undefined.
at::Tensor projected(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});
inline at::Tensor projected(const at::Tensor& x, const torch::nn::Linear& layer) {
  return projected(x, layer->weight, layer->bias);
}

}  // namespace fovea::nn
