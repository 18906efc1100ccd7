// A few keys of each row of this rank, wherever they are: sums of their values, and gradients that go
// back to the ranks that hold them.
#pragma once

#include "torch/ranks/streaming.h"

namespace fovea::over_ranks {

// places [B, H, L, count]: positions of keys in the whole sequence, -1 for none.
// The sum of the values, each times its weight, [B, H, L, Ev].
Tensor weighted_sum(const Tensor& weights, const Tensor& value, const Tensor& places,
                    const PlanPointer& plan);
// `scores`, which are scale * query · key and known, with their gradient.
Tensor with_gradient(const Tensor& query, const Tensor& key, const Tensor& scores,
                     const Tensor& places, double scale, const PlanPointer& plan);

}  // namespace fovea::over_ranks
