// Scaled dot-product self-attention in six steps (Vaswani et al. 2017):
//   1 project q = x W^Q, k = x W^K, v = x W^V   2 score q·k   3 divide by √d_k
//   4 softmax   5 weight the values   6 sum
#include "systems/scaled_dot_product/six_steps.h"

#include "fovea/attend.h"

namespace fovea::systems::scaled_dot_product {

torch::Tensor four(const torch::Tensor& rows) { return rows.reshape({1, 1, rows.size(0), -1}); }

SixSteps six_steps(const torch::Tensor& query, const torch::Tensor& keys,
                   const torch::Tensor& values) {
  const torch::Tensor q = query.reshape({1, 1, 1, -1}), k = four(keys);
  SixSteps out;
  out.scores = weights(q, k, {.score = Dot{1.0}, .normaliser = Unnormalised{}}).weights.flatten();
  out.scaled = weights(q, k, {.score = Dot{}, .normaliser = Unnormalised{}}).weights.flatten();
  out.weights = weights(q, k, {.score = Dot{}, .normaliser = Softmax{}}).weights.flatten();
  out.weighted = out.weights.unsqueeze(1) * values;
  out.sum = attend(q, k, four(values)).flatten();
  return out;
}

}  // namespace fovea::systems::scaled_dot_product
