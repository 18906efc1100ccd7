// libtorch's fused attention for a call that `sdpa_declines` has nothing against.
#pragma once

#include "torch/call.h"

namespace fovea::operators {

struct Fused {
  at::Tensor output, empty_rows;  // int64 scalar
};
Fused sdpa(const Call& call);

// `x`, or a copy of it where rows do not start at multiples of 16 bytes but could: libtorch's fused
// kernels load that much at a time. Its memory-efficient one is chosen by the strides of heads and
// then refuses those of rows. Reads no addresses, so that a trace decides as a run does.
// Differentiable.
at::Tensor with_whole_loads(const at::Tensor& x);

}  // namespace fovea::operators
