// One Explanation as one still picture: for papers, slides and pages that run no script.
#pragma once

#include <string>

#include "explain/explanation.h"

namespace fovea::explain {

// A complete SVG document that needs no other file: title, answer, the view as the pickers and sliders
// stand, its plots, and the labels that every picture must have.
std::string picture_svg(const Explanation& explanation);

}  // namespace fovea::explain
