// Memory that one call takes at its highest.
#pragma once

#include <functional>

namespace fovea::systems::cost {

// Bytes by which `run` raises the memory of the process at its peak; NaN where the operating system
// does not tell. Small calls may fit into what the process holds already: they give 0.
double peak_bytes(const std::function<void()>& run);

}  // namespace fovea::systems::cost
