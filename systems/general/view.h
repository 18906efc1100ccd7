// A memory and its queries: the weights between them, and the pair each query asks for.
#pragma once

#include "explain/explanation.h"
#include "systems/general/memories.h"
#include "systems/general/model.h"

namespace fovea::systems::general {

enum class Names { kNumbers, kCapitals };  // of the pairs

// weights [queries, pairs].
explain::Explanation picture(const Model& model, const Memory& memory, const torch::Tensor& weights,
                             const std::string& structure, Names names);

}  // namespace fovea::systems::general
