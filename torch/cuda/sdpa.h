// libtorch's fused attention for a call that `sdpa_declines` has nothing against.
#pragma once

#include "torch/call.h"

namespace fovea::operators {

struct Fused {
  at::Tensor output, empty_rows;  // int64 scalar
};
Fused sdpa(const Call& call);

}  // namespace fovea::operators
