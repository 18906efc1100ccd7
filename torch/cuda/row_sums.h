// Gradients of parameters from those of rows.
#pragma once

#include <array>

#include "torch/call.h"

namespace fovea::cuda {

// Of [batch, heads, rows, ..].
inline constexpr std::array<int64_t, 2> kButHeads{0, 2};

// Numbers of the call's rows summed to a parameter: [1] or [H], or one per query, [B, H, L]. In a fixed
// order.
at::Tensor sum_rows(const Call& call, const at::Tensor& rows, const at::Tensor& parameter);

}  // namespace fovea::cuda
