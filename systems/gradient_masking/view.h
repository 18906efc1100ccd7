// The computation graph with edges as wide as the gradient, and how it falls with e_1 - e_2.
#pragma once

#include "explain/explanation.h"
#include "systems/gradient_masking/model.h"

namespace fovea::systems::gradient_masking {

// x [2, kWidth]: the two inputs.
explain::Explanation picture(const torch::Tensor& x);

}  // namespace fovea::systems::gradient_masking
