#include "bench/rows/row.h"

#include <torch/torch.h>

#include <iterator>

namespace fovea::bench {

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (auto* family :
       {dot_rows, width_rows, decoding_rows, structure_rows, additive_rows, kernel_rows, graph_rows,
        threshold_rows, module_rows, translation_rows, memory_rows, case_rows}) {
    std::vector<Row> some = family();
    std::move(some.begin(), some.end(), std::back_inserter(rows));
  }
  return rows;
}

std::function<Tensors()> runner(Pass pass, Tensors leaves, at::Tensor gradient,
                                std::function<at::Tensor()> attention) {
  if (pass == Pass::kForward) {
    return [attention = std::move(attention)]() -> Tensors {
      const at::NoGradGuard no_grad;
      return {attention()};
    };
  }
  return [attention = std::move(attention), leaves = std::move(leaves),
          gradient = std::move(gradient)]() -> Tensors {
    Tensors results = {attention()};
    Tensors gradients = torch::autograd::grad(results, leaves, {gradient});
    results[0] = results[0].detach();
    std::move(gradients.begin(), gradients.end(), std::back_inserter(results));
    return results;
  };
}

at::Tensor normal(at::IntArrayRef size, uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  return at::randn(size, generator, at::TensorOptions(at::kFloat)).requires_grad_(true);
}

const char* name(Pass pass) { return pass == Pass::kForward ? "forward" : "forward+backward"; }

}  // namespace fovea::bench
