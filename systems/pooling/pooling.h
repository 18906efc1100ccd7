// Pooling a ragged batch: sum, mean, max or a learned query, each one call of attend.
#pragma once

#include <torch/types.h>

#include <string>

namespace fovea::systems::pooling {

// values [total, width], offsets int32 [bags + 1]; `how`: sum, mean, max (largest of each
// coordinate, ties to the lowest index) or attention, which takes query [width], or [bags, width]
// for a query that depends on its bag. Returns [bags, width]; an empty bag gives 0 with gradient 0.
torch::Tensor pool(const std::string& how, const torch::Tensor& values,
                   const torch::Tensor& offsets, const torch::Tensor& query = {});

// How much each item of one bag counts: values [items, width] -> [items]. For max: the share of
// coordinates in which it is the maximum.
torch::Tensor pool_weights(const std::string& how, const torch::Tensor& values,
                           const torch::Tensor& query = {});

}  // namespace fovea::systems::pooling
