// What is minimised: words, coverage, and for hard attention the expected gain of where it looked.
#pragma once

#include <torch/types.h>

#include "systems/show_attend_tell/model.h"

namespace fovea::systems::show_attend_tell {

struct Weighting {
  double coverage = 1;     // λ
  bool share = false;      // the target of a region's weights is words/regions, not 1
  double reward = 0.03;    // λ_r
  double entropy = 0.002;  // λ_e
};

struct Losses {
  torch::Tensor total;  // a mean over real words, with all terms
  torch::Tensor words;  // of the words alone: -log p(y) / words
};
// `targets` [real words], `real` [items, longest]. Moves the model's baseline.
Losses losses(Model& model, const Told& told, const torch::Tensor& targets,
              const torch::Tensor& real, const Weighting& weighting);

// λ Σ_i (τ - Σ_t α_ti)², τ = 1 or words/regions, summed over items.
torch::Tensor coverage_penalty(const torch::Tensor& weights, const torch::Tensor& real,
                               const Weighting& weighting);
// -λ_r (log p(y|s) - b) log p(s) - λ_e H of the items whose regions were drawn; the reward is a number,
// not differentiated. Summed over items.
torch::Tensor reinforce(const Told& told, const torch::Tensor& log_likelihood,
                        const torch::Tensor& baseline, const Weighting& weighting);

}  // namespace fovea::systems::show_attend_tell
