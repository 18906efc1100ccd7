// A still picture: a heat map as in a paper, for pages that run no script.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"

namespace fovea::explain {

// Whether this explanation can be a panel: words against words, few enough to read, and the truth
// is known.
bool is_still(const Explanation&);

// Heat maps side by side as one SVG: queries down, keys across, the true entries outlined. If an
// explanation has several maps, the chosen one. Every explanation must satisfy is_still.
std::string still_svg(const std::vector<Explanation>& panels);

}  // namespace fovea::explain
