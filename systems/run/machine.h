// Where a run computes, as the user named it.
#pragma once

#include <torch/types.h>

#include <string>

namespace fovea::systems {

torch::Device device_of(const std::string& name);
// The number of threads that libtorch takes by default.
int all_threads();
// 0: all of them.
void use_threads(int threads);
// Whether several threads are faster than one for a training whose most frequent product has so
// many multiply-adds.
bool worth_threads(double multiply_adds);

}  // namespace fovea::systems
