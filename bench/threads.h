// libtorch's own threads for the engine and the roofs, so that both sides of a comparison run on
// the same ones.
#pragma once

#include "fovea/engine.h"

namespace fovea::bench {

engine::Parallel torch_threads();

}  // namespace fovea::bench
