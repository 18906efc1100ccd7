// The six steps of scaled dot-product attention, each with its numbers (Vaswani et al. 2017).
#pragma once

#include <torch/types.h>

namespace fovea::systems::scaled_dot_product {

// Rows [n, d] as attend takes them, [1, 1, n, d].
torch::Tensor four(const torch::Tensor& rows);

// For one query [d_k] and keys [m, d_k], values [m, d_v].
struct SixSteps {
  torch::Tensor scores;    // 2: q·k_j
  torch::Tensor scaled;    // 3: divided by √d_k
  torch::Tensor weights;   // 4: softmax
  torch::Tensor weighted;  // 5: a_j v_j  [m, d_v]
  torch::Tensor sum;       // 6: [d_v]
};
// Steps 2 to 6; each is computed by attend with other choices (no scale, no normaliser).
SixSteps six_steps(const torch::Tensor& query, const torch::Tensor& keys,
                   const torch::Tensor& values);

}  // namespace fovea::systems::scaled_dot_product
