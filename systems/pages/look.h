// What to look at in the first picture of a system: one sentence under its idea.
#pragma once

#include <string>

namespace fovea::systems {

// Empty if there is none for this system.
std::string look_at(const std::string& system);
// The same for a run on a user's files, of which less is known.
std::string look_at_own(const std::string& system);

}  // namespace fovea::systems
