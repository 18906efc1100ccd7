// Losses of set predictors, each a number for an item: [items]. `target` is [items, labels] of ones
// and zeros.
#pragma once

#include <torch/types.h>

namespace fovea::systems::image_to_set {

torch::Tensor binary_loss(const torch::Tensor& logits, const torch::Tensor& target);
// 1 - sum(p t) / sum(p + t - p t), p = σ(logits); of an empty target and no probability 0.
torch::Tensor soft_iou_loss(const torch::Tensor& logits, const torch::Tensor& target);
// Cross entropy of softmax(logits) with t / |t|; with the uniform distribution where t is empty.
torch::Tensor distribution_loss(const torch::Tensor& logits, const torch::Tensor& target);

// What a predictor that takes steps says: probabilities [items, steps, labels + 1], the end last.
// `sizes` int64 [items] are the true ones; there are more steps than the largest.
//
// Binary cross entropy of max_t p_t, over the steps before the true end. The end is no label.
torch::Tensor pooled_loss(const torch::Tensor& probabilities, const torch::Tensor& target,
                          const torch::Tensor& sizes);
// Binary cross entropy of the end's probability: half for the steps before the true end, in the mean
// over them, and half for the end itself. Later steps do not count.
torch::Tensor end_loss(const torch::Tensor& probabilities, const torch::Tensor& sizes);

// Log-probabilities of the sizes 0, 1, …: [items, sizes]. Dirichlet-categorical: the network's counts
// (positive) are added to `prior`, the shares of the sizes in the training.
torch::Tensor dirichlet_sizes(const torch::Tensor& counts, const torch::Tensor& prior);

}  // namespace fovea::systems::image_to_set
