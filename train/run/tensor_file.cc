#include "train/run/tensor_file.h"

#include <torch/torch.h>

#include <cstring>

#include "data/files/file.h"
#include "io/sha256.h"
#include "data/formats/safetensors.h"

namespace fovea::train {
namespace {

using data::ElementType;

constexpr std::pair<ElementType, torch::ScalarType> kTypes[] = {
    {ElementType::kBool, torch::kBool},       {ElementType::kUInt8, torch::kUInt8},
    {ElementType::kInt8, torch::kInt8},       {ElementType::kInt16, torch::kInt16},
    {ElementType::kInt32, torch::kInt32},     {ElementType::kInt64, torch::kInt64},
    {ElementType::kFloat16, torch::kFloat16}, {ElementType::kBFloat16, torch::kBFloat16},
    {ElementType::kFloat32, torch::kFloat32}, {ElementType::kFloat64, torch::kFloat64}};

}  // namespace

torch::Tensor tensor_of(const data::Array& array) {
  torch::ScalarType type = torch::kFloat32;
  for (const auto& [element, scalar] : kTypes) {
    if (element == array.type) type = scalar;
  }
  torch::Tensor tensor = torch::empty(array.shape, type);
  if (!array.bytes.empty()) std::memcpy(tensor.data_ptr(), array.bytes.data(), array.bytes.size());
  return tensor;
}

data::Array array_of(const torch::Tensor& tensor) {
  const torch::Tensor rows = tensor.detach().cpu().contiguous();
  for (const auto& [element, scalar] : kTypes) {
    if (scalar != rows.scalar_type()) continue;
    data::Array array{element, rows.sizes().vec(), {}};
    if (rows.numel() > 0)
      array.bytes.assign(static_cast<const char*>(rows.data_ptr()), rows.nbytes());
    return array;
  }
  throw Unsupported(std::string("safetensors: no name for the type ") +
                    c10::toString(rows.scalar_type()));
}

std::string tensor_bytes(const TensorFile& file) {
  data::Safetensors content{{}, file.metadata};
  for (const auto& [name, tensor] : file.tensors) content.arrays[name] = array_of(tensor);
  return data::safetensors_bytes(content);
}

TensorFile read_tensors(const std::string& path) {
  return parse_tensors(data::read_file(path), path);
}

std::string sum_of(const std::map<std::string, torch::Tensor>& tensors) {
  io::Sha256 sum;
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor rows = tensor.detach().cpu().contiguous();
    sum.add(c10::str(name, '\n', rows.scalar_type(), rows.sizes(), '\n'));
    sum.add({static_cast<const char*>(rows.data_ptr()), rows.nbytes()});
  }
  return sum.hex();
}

TensorFile parse_tensors(std::string_view bytes, const std::string& path) {
  data::Safetensors content = data::parse_safetensors(bytes, path);
  TensorFile file{{}, std::move(content.metadata)};
  for (const auto& [name, array] : content.arrays) file.tensors[name] = tensor_of(array);
  return file;
}

}  // namespace fovea::train
