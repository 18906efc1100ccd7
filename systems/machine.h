// Where a run computes, as the user named it.
#pragma once

#include <torch/types.h>

#include <string>

namespace fovea::systems {

torch::Device device_of(const std::string& name);
// 0: as many as libtorch takes.
void use_threads(int threads);

}  // namespace fovea::systems
