// What one might type on the page of a RUN: input of `predict`.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"
#include "systems/run/session.h"

namespace fovea::systems {

// Of a user's own data what its first picture is of. Empty where an input is no text, or none is known.
std::string example_of(const Run& run, const std::vector<explain::Explanation>& pictures);

}  // namespace fovea::systems
