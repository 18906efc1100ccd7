// A user's own function of score and position, as a differentiable step on a block of scores.
#pragma once

#include "torch/composed/block.h"

namespace fovea::composed {

at::Tensor apply_custom(const Custom& custom, const at::Tensor& scores, const Block& block);

}  // namespace fovea::composed
