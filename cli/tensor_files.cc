#include "cli/tensor_files.h"

#include <ATen/ATen.h>

#include "cli/suggest.h"
#include "data/files/file.h"
#include "io/write.h"
#include "data/formats/npy.h"
#include "train/run/tensor_file.h"

namespace fovea::cli {
namespace {

constexpr std::string_view kSafetensors = ".safetensors";

at::Tensor from_safetensors(const std::string& path, const std::string& name) {
  const auto tensors = train::read_tensors(path).tensors;
  std::vector<std::string> names;
  for (const auto& [known, tensor] : tensors) names.push_back(known);
  if (name.empty() && names.size() == 1) return tensors.begin()->second;
  if (name.empty()) {
    throw data::FileError(path, 0,
                          std::to_string(names.size()) + " arrays; say which: " + path + ":NAME");
  }
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw data::FileError(path, 0, unknown("array", name, names));
  return found->second;
}

}  // namespace

at::Tensor read_tensor(const std::string& place) {
  const size_t ending = place.rfind(std::string(kSafetensors) + ":");
  if (ending != std::string::npos) {
    const size_t end = ending + kSafetensors.size();
    return from_safetensors(place.substr(0, end), place.substr(end + 1));
  }
  if (place.ends_with(kSafetensors)) return from_safetensors(place, "");
  if (place.ends_with(".npy"))
    return train::tensor_of(data::parse_npy(data::read_file(place), place));
  throw data::FileError(place, 0, "expected a name that ends in .npy or .safetensors");
}

void write_tensor(const std::string& path, const std::string& name, const at::Tensor& tensor) {
  if (path.ends_with(".npy")) {
    io::write_file(path, data::npy_bytes(train::array_of(tensor)));
  } else if (path.ends_with(kSafetensors)) {
    io::write_file(path, train::tensor_bytes({{{name, tensor}}, {}}));
  } else {
    throw data::FileError(path, 0, "expected a name that ends in .npy or .safetensors");
  }
}

}  // namespace fovea::cli
