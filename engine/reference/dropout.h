// The random choices of a call, from the generator's definition in engine/tiles/dropout.h, written again
// here.
#pragma once

#include <cstdint>

#include "fovea/engine.h"

namespace fovea::reference {

struct Place {
  int64_t batch, head, query, key;
};

// What dropout multiplies a weight with: 0, or 1 / (1 - p).
double dropout_factor(const engine::Problem&, const Place&);
// The number in [0, 1) that picks the key of a sampled row; `key` is not used.
double sample_uniform(const engine::Problem&, const Place&);

}  // namespace fovea::reference
