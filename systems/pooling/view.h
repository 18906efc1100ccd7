// What a pooling takes from a bag, beside even weights and attention's.
#pragma once

#include <string>

#include "data/packed.h"
#include "explain/explanation.h"
#include "systems/pooling/model.h"

namespace fovea::systems::pooling {

// Of one bag; `label` goes before the outcome.
explain::Explanation picture(Model& model, const data::Packed& bag, const std::string& label);

}  // namespace fovea::systems::pooling
