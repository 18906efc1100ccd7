#include "train/tensor_file.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "data/file.h"

namespace fovea::train {
namespace {

using Json = nlohmann::ordered_json;

struct TypeName {
  torch::ScalarType type;
  const char* name;
};
constexpr TypeName kTypes[] = {{torch::kFloat64, "F64"}, {torch::kFloat32, "F32"}, {torch::kFloat16, "F16"},
                               {torch::kBFloat16, "BF16"}, {torch::kInt64, "I64"}, {torch::kInt32, "I32"},
                               {torch::kInt16, "I16"}, {torch::kInt8, "I8"}, {torch::kUInt8, "U8"}, {torch::kBool, "BOOL"}};

const char* name_of(torch::ScalarType type) {
  for (const TypeName& known : kTypes)
    if (known.type == type) return known.name;
  throw Unsupported(fmt::format("safetensors: no name for the type {}", c10::toString(type)));
}

torch::Tensor tensor_of(const Json& entry, std::string_view bytes, const std::string& path, const std::string& name) {
  const auto wrong = [&](const std::string& what) -> data::FileError {
    return {path, 0, fmt::format("tensor '{}': {}", name, what)};
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
    throw wrong("expected dtype, shape and data_offsets");
  const TypeName* type = nullptr;
  for (const TypeName& known : kTypes)
    if (entry.at("dtype") == known.name) type = &known;
  if (!type) throw wrong("unknown dtype " + entry.at("dtype").dump());
  const auto shape = entry.at("shape").get<std::vector<int64_t>>();
  const auto offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
  uint64_t size = c10::elementSize(type->type);
  for (const int64_t n : shape) {
    if (n < 0 || (n > 0 && size > (uint64_t{1} << 40) / static_cast<uint64_t>(n))) throw wrong("shape out of range");
    size *= static_cast<uint64_t>(n);
  }
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > bytes.size() || offsets[1] - offsets[0] != size)
    throw wrong(fmt::format("expected {} bytes within {}, found offsets {}", size, bytes.size(), entry.at("data_offsets").dump()));
  torch::Tensor tensor = torch::empty(shape, type->type);
  if (size) std::memcpy(tensor.data_ptr(), bytes.data() + offsets[0], size);
  return tensor;
}

}  // namespace

std::string tensor_bytes(const TensorFile& file) {
  Json header = Json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  uint64_t end = 0;
  std::vector<torch::Tensor> flat;
  for (const auto& [name, tensor] : file.tensors) {
    flat.push_back(tensor.detach().cpu().contiguous());
    const uint64_t start = end;
    end += flat.back().nbytes();
    header[name] = {{"dtype", name_of(tensor.scalar_type())}, {"shape", tensor.sizes().vec()}, {"data_offsets", {start, end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts at a multiple of eight
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  bytes += text;
  bytes.reserve(bytes.size() + end);
  for (const torch::Tensor& tensor : flat) bytes.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
  return bytes;
}

TensorFile read_tensors(const std::string& path) {
  const std::string all = data::read_file(path);
  uint64_t length = 0;
  for (size_t i = 0; i < 8 && i < all.size(); ++i) length |= uint64_t{static_cast<uint8_t>(all[i])} << (8 * i);
  if (all.size() < 8 || length > all.size() - 8)
    throw data::FileError(path, 0, fmt::format("header of {} bytes in a file of {}: cut short, or not safetensors", length, all.size()));
  const Json header = Json::parse(all.substr(8, length), nullptr, false);
  if (!header.is_object()) throw data::FileError(path, 0, "the header is not a JSON object");
  TensorFile out;
  const std::string_view bytes = std::string_view(all).substr(8 + length);
  try {
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") out.metadata = entry.get<std::map<std::string, std::string>>();
      else out.tensors[name] = tensor_of(entry, bytes, path, name);
    }
  } catch (const Json::exception& error) {
    throw data::FileError(path, 0, fmt::format("header: {}", error.what()));
  }
  return out;
}

}  // namespace fovea::train
