// What `fovea --version` says about the build and the machine.
#pragma once

#include <string>

namespace fovea::cli {

// One line each: Fovea, libtorch, the SIMD target chosen, threads, GPU.
std::string version();

}  // namespace fovea::cli
