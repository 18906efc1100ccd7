#include "systems/image_to_set/losses.h"

#include <torch/torch.h>

namespace fovea::systems::image_to_set {
namespace {

constexpr double kLeast = 1e-6;  // of a probability whose logarithm is taken

// Probabilities at 0 and 1 have a finite loss, and no gradient.
torch::Tensor cross_entropy(const torch::Tensor& p, const torch::Tensor& target) {
  const torch::Tensor kept = p.clamp(kLeast, 1 - kLeast);
  return -(target * kept.log() + (1 - target) * (1 - kept).log());
}

// [items, steps]: 1 before the true end.
torch::Tensor before_end(const torch::Tensor& probabilities, const torch::Tensor& sizes) {
  const torch::Tensor step = torch::arange(probabilities.size(1), sizes.options());
  return (step.unsqueeze(0) < sizes.unsqueeze(1)).to(probabilities.dtype());
}

}  // namespace

torch::Tensor binary_loss(const torch::Tensor& logits, const torch::Tensor& target) {
  return torch::binary_cross_entropy_with_logits(logits, target, {}, {}, at::Reduction::None)
      .mean(1);
}

torch::Tensor soft_iou_loss(const torch::Tensor& logits, const torch::Tensor& target) {
  const torch::Tensor p = logits.sigmoid();
  return 1 - ((p * target).sum(1) + kLeast) / ((p + target - p * target).sum(1) + kLeast);
}

torch::Tensor distribution_loss(const torch::Tensor& logits, const torch::Tensor& target) {
  const torch::Tensor size = target.sum(1, /*keepdim=*/true);
  const torch::Tensor wanted =
      torch::where(size > 0, target / size.clamp_min(1),
                   torch::full_like(target, 1 / static_cast<double>(target.size(1))));
  return -(wanted * logits.log_softmax(1)).sum(1);
}

torch::Tensor pooled_loss(const torch::Tensor& probabilities, const torch::Tensor& target,
                          const torch::Tensor& sizes) {
  const torch::Tensor labels = probabilities.slice(2, 0, target.size(1));
  const torch::Tensor largest =
      std::get<0>((labels * before_end(probabilities, sizes).unsqueeze(2)).max(1));
  return cross_entropy(largest, target).mean(1);
}

torch::Tensor end_loss(const torch::Tensor& probabilities, const torch::Tensor& sizes) {
  const torch::Tensor end = probabilities.select(2, -1);  // [items, steps]
  const torch::Tensor before = before_end(probabilities, sizes);
  const torch::Tensor early = (cross_entropy(end, torch::zeros_like(end)) * before).sum(1) /
                              sizes.clamp_min(1).to(end.dtype());
  const torch::Tensor at_end = end.gather(1, sizes.unsqueeze(1)).squeeze(1);
  return (early + cross_entropy(at_end, torch::ones_like(at_end))) / 2;
}

torch::Tensor dirichlet_sizes(const torch::Tensor& counts, const torch::Tensor& prior) {
  const torch::Tensor all = counts + prior;
  return all.clamp_min(kLeast).log() - all.sum(1, /*keepdim=*/true).clamp_min(kLeast).log();
}

}  // namespace fovea::systems::image_to_set
