// A program outside the tree: additive, sparse attention with a gradient through libtorch.
#include <ATen/ATen.h>
#include <fovea/attend.h>

#include <cstdio>

int main() {
  at::manual_seed(0);
  const at::Tensor query = at::randn({1, 2, 5, 8}).requires_grad_();
  const at::Tensor key = at::randn({1, 2, 7, 8}), value = at::ones({1, 2, 7, 3});
  const at::Tensor out =
      fovea::attend(query, key, value,
                    {.score = fovea::Additive{at::randn({8})}, .normaliser = fovea::Sparsemax{}});
  out.square().sum().backward();
  // Weights sum to one and every value is one, so every output is; the gradient is zero, and there.
  std::printf("%s\n", at::allclose(out, at::ones({1, 2, 5, 3})) &&
                              query.grad().abs().max().item<float>() < 1e-5
                          ? "ok"
                          : "wrong");
}
