// Scores that are another score of other rows: q'Wk and the cosine are dot products, a metric
// stretches the rows. What they cost is linear in the rows, so libtorch's operations make them, and
// differentiate them.
#pragma once

#include "torch/call.h"

namespace fovea::cuda {

struct Reduced {
  at::Tensor query, key;
  at::Tensor relative;  // scale q.rK_c, [rows of the query.., 2 clip + 1], or undefined
  double scale = 1;     // of the dot product; the slope of rank-one scores
};

// Differentiable by the call's tensors.
Reduced reduced(const Call& call);

// The relative positions among a call's modifiers, or null.
const Relative* relative_of(const Call& call);

}  // namespace fovea::cuda
