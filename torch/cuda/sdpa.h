// libtorch's fused attention, for a call that `sdpa_declines` gives no reason against.
#pragma once

#include "torch/call.h"

namespace fovea::operators {

struct Fused {
  at::Tensor output, empty_rows;  // int64 scalar
};
Fused sdpa(const Call& call);

// `x`, or a copy of it if its rows do not start at multiples of 16 bytes but could. libtorch's fused
// kernels load 16 bytes at a time; its memory-efficient kernel checks the strides of heads when it is
// chosen, and then refuses those of rows. Does not read addresses, so that a trace decides like a
// run. Differentiable.
at::Tensor with_whole_loads(const at::Tensor& x);

}  // namespace fovea::operators
