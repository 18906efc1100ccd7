// Tensors from and to .npy and .safetensors files.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace fovea::cli {

// "x.npy", or "x.safetensors:NAME" (":NAME" may be left out where the file holds one array).
at::Tensor read_tensor(const std::string& place);
// By the ending; the file appears under its name only when complete. `name` is the array's in a
// safetensors file.
void write_tensor(const std::string& path, const std::string& name, const at::Tensor& tensor);

}  // namespace fovea::cli
