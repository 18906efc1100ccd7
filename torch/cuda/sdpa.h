// libtorch's fused attention for a call that `sdpa_declines` has nothing against.
#pragma once

#include "torch/call.h"

namespace fovea::operators {

at::Tensor sdpa(const Call& call);

}  // namespace fovea::operators
