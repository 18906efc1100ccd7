// Effect of attention on gradients: o = a_1 x_1 + a_2 x_2, a = softmax(e).
//   direct       dL/dx_i = a_i dL/do
//   by the score dL/de_i = a_i (x_i - o)·dL/do      (with two inputs: ± a_1 a_2 (x_1 - x_2)·dL/do)
// At a = (1, 0) the second input receives nothing, and both score gradients vanish: a saturated
// softmax freezes its own choice.
#include "systems/gradient_masking/model.h"

#include "fovea/attend.h"

namespace fovea::systems::gradient_masking {

torch::Tensor mix(const torch::Tensor& x, const torch::Tensor& e) {
  // The query is the row of scores.
  return attend(e.reshape({1, 1, 1, 2}), torch::zeros({1, 1, 2, 1}, x.options()),
                x.reshape({1, 1, 2, -1}), {.score = Location{}})
      .flatten();
}

Gradients gradients(const torch::Tensor& x, const torch::Tensor& e,
                    const torch::Tensor& at_output) {
  const torch::AutoGradMode enabled(true);
  const torch::Tensor values = x.detach().clone().requires_grad_(),
                      scores = e.detach().clone().requires_grad_();
  mix(values, scores).backward(at_output);
  Gradients out{values.grad(), scores.grad(), {}, {}};
  const torch::Tensor a = scores.detach().softmax(0), o = mix(x, e).detach();
  out.x_formula = a.unsqueeze(1) * at_output.unsqueeze(0);
  out.e_formula = a * (x - o.unsqueeze(0)).matmul(at_output);
  return out;
}

Model::Model() {
  x = register_parameter("x", torch::randn({2, kWidth}, torch::kFloat64));
  e = register_parameter("e", torch::zeros({2}, torch::kFloat64));
  start = register_buffer("start", torch::zeros({2, kWidth}, torch::kFloat64));
  target = register_buffer("target", torch::randn({kWidth}, torch::kFloat64));
}

}  // namespace fovea::systems::gradient_masking
