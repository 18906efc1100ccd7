// The measured times, the crossing, and what storing the weights would take.
#pragma once

#include "explain/explanation.h"
#include "systems/cost/model.h"

namespace fovea::systems::cost {

explain::Explanation picture(const Model& model, int64_t row);

}  // namespace fovea::systems::cost
