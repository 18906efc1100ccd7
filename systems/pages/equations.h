// Equations for the pages: written in LaTeX where a system registers, typeset by scripts/system-pages.
#pragma once

#include <string>

namespace fovea::systems {

// The equation as MathML. One that scripts/system-pages has not seen yet is shown as its LaTeX.
std::string mathml(const std::string& latex);

}  // namespace fovea::systems
