// What one might type for a system that was trained on its generated data: input of `predict`.
#pragma once

#include <string>

namespace fovea::systems {

// Empty where an input is no text: pictures, or what depends on the training's own files.
std::string example_of(const std::string& system);

}  // namespace fovea::systems
