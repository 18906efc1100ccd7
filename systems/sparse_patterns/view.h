// Pictures of sparse patterns: a completed picture, who sees whom, whom layers reach, time against n.
#pragma once

#include <torch/types.h>

#include <vector>

#include "explain/explanation.h"
#include "systems/sparse_patterns/model.h"

namespace fovea::systems::sparse_patterns {

// `whole` [1, n]: a picture whose pixels from `given` on the model drew.
explain::Explanation completion(Model& model, const torch::Tensor& whole, int64_t given);
// Of the pattern alone: connectivity, reach, cost.
std::vector<explain::Explanation> pattern_pictures(const Config& config);

}  // namespace fovea::systems::sparse_patterns
