// A picture for a table of contents: the shape of what an Explanation shows, without a word.
#pragma once

#include <string>

#include "explain/explanation.h"

namespace fovea::explain {

// SVG that takes its colours from the page: classes `mark` and `trace` are styled by web/style.css.
// Empty where there is nothing to draw.
std::string thumbnail_svg(const Explanation&);

}  // namespace fovea::explain
