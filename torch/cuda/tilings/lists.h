// How a block of the drivers of thresholds (texts/drivers/mma/mma_lists.h) divides its work.
#pragma once

#include <cstdint>
#include <string>

#include "torch/call.h"

namespace fovea::cuda {

struct ListsTiling {
  bool panels;  // rows lie in panels (texts/wgmma.h)
  int warps = 4, other = 64, resident = 2;
  int step = 32;  // of the other rows at once, where lists do not serve
  int room = 96;  // entries of a row's list
};
ListsTiling lists_tiling(bool panels);

// Its constants, as the texts want them.
std::string declared(const ListsTiling& tiling);

// The memory of a block: mma_threshold_forward.h, mma_threshold_backward.h, ..._backward_key.h.
struct ListsBytes {
  int64_t forward, query, key;
};
ListsBytes lists_bytes(int64_t width, int64_t value_width, size_t modifiers,
                       const ListsTiling& tiling);

// Why lists cannot find the threshold of a normaliser that looks for one; empty: they can.
std::string lists_decline(const Call& call);

}  // namespace fovea::cuda
