// Convolution with a kernel of its own at every position: the operation of light and dynamic
// convolutions.
#pragma once

#include <ATen/core/Tensor.h>

namespace fovea::nn {

// x [B, L, width], weight [B, L, heads, kernel] -> [B, L, width]; a head is `width / heads` columns.
// Position t takes weight[t, h, j] of position t + j - left; positions outside are zero. On the CPU
// one pass of the engine (float and double); elsewhere `weighted_windows`. Differentiable twice.
at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, int64_t left);

// The same in libtorch's operations, for rows that are padded already: x [B, L + kernel - 1, width].
at::Tensor weighted_windows(const at::Tensor& padded, const at::Tensor& weight);

}  // namespace fovea::nn
