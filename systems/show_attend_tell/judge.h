// The figures of some pictures: captions as the model tells them against the true ones, and where each
// named thing was looked for while the true caption was read.
#pragma once

#include <cstdint>
#include <vector>

#include "systems/show_attend_tell/telling.h"
#include "train/types.h"

namespace fovea::systems::show_attend_tell {

Evaluation judge(const Teller& teller, const data::CaptionSet& set,
                 const std::vector<int64_t>& items, int64_t beam);

}  // namespace fovea::systems::show_attend_tell
