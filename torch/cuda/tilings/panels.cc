#include "torch/cuda/tilings/panels.h"

#include <algorithm>

namespace fovea::cuda {

// Found by trying on an H200.
PanelTiling panel_tiling(int64_t width, int64_t value_width, bool wide, bool forward,
                         bool has_threshold) {
  PanelTiling tiling;
  if (wide) {
    tiling.other = 32;
    tiling.resident = forward ? 2 : 1;
  } else if (!forward) {
    tiling.resident = tiling.unrolled = 2;
    if (!has_threshold) {
      tiling.threads = 256;
      tiling.members = 16;
    }
  }
  const int64_t number = wide ? 8 : 4, row_data = wide ? 64 : 40, pack = 16 / number,
                span = tiling.members * pack, sides = forward ? 1 : 2, count = 4,
                pitch = (std::max(width, value_width) + span - 1) / span * span + pack;
  const int64_t numbers = pitch * (sides * tiling.own + 2 * tiling.other) +
                          tiling.own * (tiling.other + 2 * pack),
                rows = std::max(tiling.own, tiling.other);
  tiling.bytes = static_cast<unsigned>(
      (numbers * number + rows * row_data + tiling.own * count + 15) / 16 * 16);
  return tiling;
}

std::string declared(const PanelTiling& t) {
  const auto text = [](const char* name, int n) {
    return std::string(name) + " = " + std::to_string(n);
  };
  return "constexpr int " + text("kOwn", t.own) + text(", kOther", t.other) +
         text(", kThreads", t.threads) + text(", kMembers", t.members) +
         text(", kResident", t.resident) + text(", kUnrolled", t.unrolled) +
         text(", kSharedBytes", static_cast<int>(t.bytes)) + ";";
}

}  // namespace fovea::cuda
