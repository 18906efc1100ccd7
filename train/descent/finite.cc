#include "train/descent/finite.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "fovea/error.h"

namespace fovea::train {
namespace {

bool all_finite(const torch::Tensor& tensor) {
  return !tensor.is_floating_point() || tensor.isfinite().all().item<bool>();
}

}  // namespace

const torch::Tensor& finite(const torch::Tensor& tensor, const std::string& what) {
  if (all_finite(tensor)) return tensor;
  const torch::Tensor flat = tensor.detach().cpu().to(torch::kFloat64).reshape({-1});
  const int64_t at = flat.isfinite().logical_not().nonzero()[0].item<int64_t>();
  const int64_t items = tensor.dim() > 0 ? tensor.size(0) : 1;
  throw InvalidArgument(fmt::format("{}: {} for item {}, expected finite numbers", what,
                                    flat[at].item<double>(), at / (flat.numel() / items)));
}

std::string not_finite(const std::map<std::string, torch::Tensor>& tensors) {
  for (const auto& [name, tensor] : tensors)
    if (!all_finite(tensor)) return name;
  return "";
}

}  // namespace fovea::train
