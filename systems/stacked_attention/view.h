// Hops over the picture: broad, then narrow.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"
#include "systems/stacked_attention/model.h"

namespace fovea::systems::stacked_attention {

struct Shown {
  std::string question, answer, expected;  // expected: empty if not known
  double probability = 0;
  std::vector<uint8_t> pixels;  // [side, side, 3]
  int64_t side = 0, grid = 0;
  std::vector<int64_t> cells;  // for each hop the region to look at; -1 or none: not known
};

explain::Explanation picture(const Shown& shown, const Look& look);

}  // namespace fovea::systems::stacked_attention
