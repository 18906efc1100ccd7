// How a block of the drivers on panels (texts/drivers/panels) divides its work.
#pragma once

#include <cstdint>
#include <string>

namespace fovea::cuda {

struct PanelTiling {
  int own = 64, other = 64, threads = 128, members = 8, resident = 3, unrolled = 1;
  unsigned bytes = 0;  // of a block's memory
};
PanelTiling panel_tiling(int64_t width, int64_t value_width, bool wide, bool forward,
                         bool has_threshold);

// Its constants, as the texts want them.
std::string declared(const PanelTiling& tiling);

}  // namespace fovea::cuda
