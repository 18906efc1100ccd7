#include "systems/show_attend_tell/losses.h"

#include <torch/torch.h>

namespace fovea::systems::show_attend_tell {

torch::Tensor coverage_penalty(const torch::Tensor& weights, const torch::Tensor& real,
                               const Weighting& weighting) {
  const torch::Tensor seen = weights.sum(1);  // [items, regions]
  const torch::Tensor words = real.sum(1, /*keepdim=*/true).to(seen.scalar_type());
  const torch::Tensor target =
      weighting.share ? words / static_cast<double>(seen.size(1)) : torch::ones_like(words);
  return weighting.coverage * (target - seen).square().sum();
}

torch::Tensor reinforce(const Told& told, const torch::Tensor& log_likelihood,
                        const torch::Tensor& baseline, const Weighting& weighting) {
  const torch::Tensor of_drawn = told.drawn.to(log_likelihood.scalar_type());
  const torch::Tensor gain = (log_likelihood - baseline).detach() * of_drawn;
  const torch::Tensor log_choice = told.chosen.sum(1);
  // 0 log 0 = 0: at padding every weight is zero.
  const torch::Tensor entropy =
      -(told.weights * told.weights.clamp_min(1e-10).log()).sum(at::IntArrayRef{1, 2});
  return -weighting.reward * (gain * log_choice).sum() -
         weighting.entropy * (entropy * of_drawn).sum();
}

Losses losses(Model& model, const Told& told, const torch::Tensor& targets,
              const torch::Tensor& real, const Weighting& weighting) {
  const torch::Tensor of_word = torch::nn::functional::cross_entropy(
      told.logits, targets,
      torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
  const auto count = static_cast<double>(targets.size(0));
  torch::Tensor sum = of_word.sum();
  Losses out{.total = {}, .words = sum / count};
  if (told.weights.defined() && weighting.coverage > 0)
    sum = sum + coverage_penalty(told.weights, real, weighting);
  if (told.chosen.defined()) {
    const torch::Tensor each = torch::zeros(real.sizes(), of_word.options())
                                   .masked_scatter(real, -of_word.detach())
                                   .sum(1);  // log p(y) of each item
    sum = sum + reinforce(told, each, model.baseline, weighting);
    const torch::NoGradGuard no_grad;
    model.baseline.mul_(0.9).add_(0.1 * each.mean());
  }
  out.total = sum / count;
  return out;
}

}  // namespace fovea::systems::show_attend_tell
