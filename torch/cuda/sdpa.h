// libtorch's fused attention, for a call that `sdpa_declines` gives no reason against.
#pragma once

#include "torch/call.h"

namespace fovea::operators {

struct Fused {
  at::Tensor output, empty_rows;  // int64 scalar
};
Fused sdpa(const Call& call);
// The output alone of a call of attend_output that libtorch's fused attention takes, gradient
// included: a small call spends most of its time on what else `attend` returns.
std::optional<at::Tensor> output_of_sdpa(const at::Tensor& query, const at::Tensor& key,
                                         const at::Tensor& value, c10::string_view choices);

// `x`, or a copy of it if its rows do not start at multiples of 16 bytes but could. libtorch's fused
// kernels load 16 bytes at a time; its memory-efficient kernel checks the strides of heads when it is
// chosen, and then refuses those of rows. Does not read addresses, so that a trace decides like a
// run. Differentiable.
at::Tensor with_whole_loads(const at::Tensor& x);

}  // namespace fovea::operators
