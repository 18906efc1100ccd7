// A still picture: attention as it stands in a paper, for a page that runs no script.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"

namespace fovea::explain {

// May this explanation be a panel: words against words, few enough to read, and the truth known?
bool is_still(const Explanation&);

// Heat maps side by side as one SVG: queries down, keys across, the true places outlined. Of
// several maps the one whose picker stands on it. Every explanation must be one that is_still.
std::string still_svg(const std::vector<Explanation>& panels);

}  // namespace fovea::explain
