// Named tensors and a few words about them, in one safetensors file.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>

namespace fovea::train {

struct TensorFile {
  std::map<std::string, torch::Tensor> tensors = {};
  std::map<std::string, std::string> metadata = {};
};

std::string tensor_bytes(const TensorFile&);
// Every field of the file is checked; InvalidArgument names the first that is wrong.
TensorFile read_tensors(const std::string& path);

}  // namespace fovea::train
