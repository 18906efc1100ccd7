// What a loop of training needs to continue after a kill: numbers, and tensors by name.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>

#include "train/types.h"

namespace fovea::train {

using TensorMap = std::map<std::string, torch::Tensor>;

struct State {
  Json numbers = Json::object();
  TensorMap tensors = {};
};

TensorMap copies(const TensorMap&);
// Adds tensors under `prefix` + their names, and gets them back.
void put(TensorMap& into, const std::string& prefix, const TensorMap& tensors);
TensorMap take(const TensorMap& from, const std::string& prefix);

// One tensor, or number, of a state that was read from a file. InvalidArgument where it is missing or of another type or
// rank.
torch::Tensor saved_tensor(const TensorMap&, const std::string& name, torch::ScalarType,
                           int64_t rank);
double saved_number(const TensorMap&, const std::string& name);

}  // namespace fovea::train
