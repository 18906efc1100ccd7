// What to look at in the first picture of a system: one sentence under its idea.
#pragma once

#include <string>

namespace fovea::systems {

// Empty if there is none for this system.
std::string look_at(const std::string& system);

}  // namespace fovea::systems
