// What to look at in the first picture of a system: one sentence under its idea.
#pragma once

#include <string>

namespace fovea::systems {

// Empty if there is none for this system. `task`: of a system that has several.
std::string look_at(const std::string& system, const std::string& task);
// The same for a run on a user's files, of which less is known.
std::string look_at_own(const std::string& system, const std::string& task);

}  // namespace fovea::systems
