#include "train/descent/state.h"

#include <fmt/format.h>

#include "fovea/error.h"
#include "train/run/draft.h"

namespace fovea::train {

TensorMap copies(const TensorMap& tensors) {
  TensorMap out;
  for (const auto& [name, tensor] : tensors) out[name] = tensor.detach().clone();
  return out;
}

void put(TensorMap& into, const std::string& prefix, const TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) into[prefix + name] = tensor;
}

TensorMap take(const TensorMap& from, const std::string& prefix) {
  TensorMap out;
  for (const auto& [name, tensor] : from)
    if (name.starts_with(prefix)) out[name.substr(prefix.size())] = tensor;
  return out;
}

torch::Tensor saved_tensor(const TensorMap& saved, const std::string& name, torch::ScalarType type,
                           int64_t rank) {
  const auto found = saved.find(name);
  if (found == saved.end() || found->second.scalar_type() != type || found->second.dim() != rank)
    throw InvalidArgument(
        fmt::format("{}: tensor '{}' is missing or of another kind", kStateFile, name));
  return found->second;
}

double saved_number(const TensorMap& saved, const std::string& name) {
  return saved_tensor(saved, name, torch::kFloat64, 0).item<double>();
}

}  // namespace fovea::train
