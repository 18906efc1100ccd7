// Attention as libtorch operations, for every combination: correct, but not fused. It is used for
// CUDA tensors where libtorch's fused kernels decline, and for second derivatives on every device.
#pragma once

#include <vector>

#include "torch/call.h"

namespace fovea::composed {

struct Outputs {
  at::Tensor output, lse;  // lse undefined where the normaliser has none
  at::Tensor empty_rows;   // int64 scalar
};
// Differentiable by autograd, as often as wanted, in every tensor of the call. Without gradient,
// memory beyond the result is bounded (kBlockElements a block, some dozen such arrays); with
// gradient, autograd keeps every block: O(B H L S), times the width for scores of pairs of rows.
Outputs attend(const Call& call);

// Gradients of query, key, value and then of every array of the choices in visit_arrays' order;
// undefined where `wanted` is 0. Blocks are computed again one at a time, so memory is bounded as
// in `attend` without gradient.
std::vector<at::Tensor> backward(const Call& call, const at::Tensor& d_output,
                                 const at::Tensor& d_lse, at::IntArrayRef wanted);

// Gradients of what `backward` computes, given those of its results (undefined: none): of d_output,
// d_lse, query, key, value and every array. Memory O(B H L S), as `attend` with gradient.
// Differentiable again where gradients are being recorded.
std::vector<at::Tensor> double_backward(const Call& call, const at::Tensor& d_output,
                                        const at::Tensor& d_lse,
                                        const std::vector<at::Tensor>& second);

SelectedWeights weights(const Call& call, const Selection& selection);

// Elements of the largest array of a block: 2^22, 16 MB of float32.
inline constexpr int64_t kBlockElements = int64_t{1} << 22;

}  // namespace fovea::composed
