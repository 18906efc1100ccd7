// The figure that a system's paper reports, to stand beside ours.
#pragma once

#include <string>

namespace fovea::systems {

// In a line, with its data. "" for a system that no paper measures; figures that were not compared
// with the paper itself say so.
std::string published_figure(const std::string& system);

}  // namespace fovea::systems
