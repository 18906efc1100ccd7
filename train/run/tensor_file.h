// Named tensors and their metadata, in one safetensors file.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>
#include <string_view>

#include "data/formats/array.h"

namespace fovea::train {

struct TensorFile {
  std::map<std::string, torch::Tensor> tensors = {};
  std::map<std::string, std::string> metadata = {};
};

// A file's array as a tensor and back.
torch::Tensor tensor_of(const data::Array&);
data::Array array_of(const torch::Tensor&);

std::string tensor_bytes(const TensorFile&);
// Every field of the file is checked; InvalidArgument names the first that is wrong.
TensorFile parse_tensors(std::string_view bytes, const std::string& path);
TensorFile read_tensors(const std::string& path);
// The sha256 of names, types, shapes and numbers.
std::string sum_of(const std::map<std::string, torch::Tensor>& tensors);

}  // namespace fovea::train
