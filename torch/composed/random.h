// The engine's random numbers by position (engine/tiles/random.h) in tensor arithmetic: the same seed
// gives the same choices on every path and device.
#pragma once

#include "torch/composed/block.h"

namespace fovea::composed {

// 1 where a weight survives dropout, 0 elsewhere, for each pair of a block; of the type and shape
// of `like`.
at::Tensor dropout_keep(const Block& block, const at::Tensor& like, double dropout_p,
                        uint64_t seed);
// One uniform number in [0, 1) a row, double [B, H, l, 1].
at::Tensor row_uniform(const Block& block, const at::Tensor& like, uint64_t seed);

}  // namespace fovea::composed
