#include "train/descent/together.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "train/run/tensor_file.h"

namespace fovea::train {
namespace {

constexpr std::string_view kMetric = "metric.", kBuffer = "buffer.";

TensorMap buffers_of(const torch::nn::Module& model) {
  TensorMap out;
  for (const auto& item : model.named_buffers()) out[item.key()] = item.value();
  return out;
}

}  // namespace

Metrics validate_together(Ranks& ranks, const torch::nn::Module& model,
                          const std::function<Metrics()>& validate, const std::string& what) {
  const torch::NoGradGuard guard;
  const TensorMap buffers = buffers_of(model);
  TensorMap before;
  for (const auto& [name, buffer] : buffers) before[name] = buffer.detach().clone();
  const Metrics own = validate();
  std::string bytes;
  if (ranks.first()) {
    TensorFile file;
    for (const auto& [name, value] : own)
      file.tensors[std::string(kMetric) + name] = torch::tensor(value, torch::kFloat64);
    for (const auto& [name, buffer] : buffers)
      if (!torch::equal(buffer, before.at(name)))
        file.tensors[std::string(kBuffer) + name] = buffer;
    bytes = tensor_bytes(file);
  }
  const TensorFile shared = parse_tensors(ranks.broadcast(bytes, what), what);
  Metrics metrics;
  for (const auto& [name, tensor] : shared.tensors) {
    if (name.starts_with(kMetric))
      metrics[name.substr(kMetric.size())] = tensor.item<double>();
    else if (!ranks.first())
      torch::Tensor(buffers.at(name.substr(kBuffer.size()))).copy_(tensor);
  }
  return metrics;
}

void check_same_weights(Ranks& ranks, const torch::nn::Module& model, const std::string& when) {
  const std::vector<std::string> sums =
      ranks.gather(sum_of(weights_of(model)), "the weights' sums " + when);
  for (size_t rank = 1; rank < sums.size(); ++rank)
    if (sums[rank] != sums[0])
      throw std::runtime_error(
          fmt::format("{}: its weights {} have sha256 {}, expected {} (rank 0's)",
                      ranks.name_of(static_cast<int>(rank)), when, sums[rank].substr(0, 12),
                      sums[0].substr(0, 12)));
}

}  // namespace fovea::train
