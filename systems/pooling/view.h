// What a pooling takes from a bag, beside even weights and attention's.
#pragma once

#include <string>
#include <vector>

#include "data/packed.h"
#include "explain/explanation.h"
#include "systems/pooling/model.h"

namespace fovea::systems::pooling {

struct Shown {
  data::Packed bag;
  std::string label{};               // goes before the outcome
  std::vector<std::string> items{};  // what is said of each; none: its numbers
};
explain::Explanation picture(Model& model, const Shown& shown);

}  // namespace fovea::systems::pooling
