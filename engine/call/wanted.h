// Gradients mirror the problem's choices; a caller who wants none of a choice's may leave it out.
#pragma once

#include <optional>

#include "fovea/engine.h"

namespace fovea::engine {

// The same gradients with a choice for each of the problem's, the missing ones without places; or
// nothing, where none is missing.
std::optional<Gradients> with_every_choice(const Problem& problem, const Gradients& gradients);

}  // namespace fovea::engine
