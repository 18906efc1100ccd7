// o = a_1 x_1 + a_2 x_2 and its gradients, by autograd and by the formulas.
#pragma once

#include <torch/torch.h>

namespace fovea::systems::gradient_masking {

// x [2, width], e [2] -> o [width].
torch::Tensor mix(const torch::Tensor& x, const torch::Tensor& e);

struct Gradients {
  torch::Tensor x, e;                  // by autograd
  torch::Tensor x_formula, e_formula;  // a_i dL/do and a_i (x_i - o)·dL/do
};
Gradients gradients(const torch::Tensor& x, const torch::Tensor& e, const torch::Tensor& at_output);

inline constexpr int64_t kWidth = 4;

// x and e, where x began, and what o should become.
struct Model : torch::nn::Module {
  Model();
  torch::Tensor x, e, start, target;
};

}  // namespace fovea::systems::gradient_masking
