// Tensors from and to .npy and .safetensors files.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace fovea::cli {

// "x.npy", or "x.safetensors:NAME" (":NAME" may be left out if the file contains one array).
at::Tensor read_tensor(const std::string& place);
// The ending of `path` decides the format. The file appears under its name only when it is
// complete. `name` is the array's name in a safetensors file.
void write_tensor(const std::string& path, const std::string& name, const at::Tensor& tensor);

}  // namespace fovea::cli
