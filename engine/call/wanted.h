// Gradients have the same choices as the problem. A caller who wants none of a choice's gradients
// may leave it out.
#pragma once

#include <optional>

#include "fovea/engine.h"

namespace fovea::engine {

// The same gradients with every choice of the problem, the missing ones with empty arrays; nothing
// if none is missing.
std::optional<Gradients> with_every_choice(const Problem& problem, const Gradients& gradients);

}  // namespace fovea::engine
