// Convolution with a kernel of its own at every position: the operation of light and dynamic
// convolutions.
#pragma once

#include <ATen/core/Tensor.h>

namespace fovea::nn {

// x [B, L, width], weight [B, L, heads, kernel] -> [B, L, width]; a head is `width / heads` columns.
// Position t takes weight[t, h, j] of position t + j - left; positions outside are zero. On the CPU
// one pass of the engine (float and double); elsewhere `banded_products`. Differentiable twice.
at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, int64_t left);

// The same in a few large operations of libtorch, as a GPU wants them: a block of positions is the
// product of a band of weights and the rows it reaches. It costs what its length costs, not the square.
at::Tensor banded_products(const at::Tensor& x, const at::Tensor& weight, int64_t left);

// The same for few positions whose rows are padded already: x [B, L + kernel - 1, width].
at::Tensor weighted_windows(const at::Tensor& padded, const at::Tensor& weight);

}  // namespace fovea::nn
