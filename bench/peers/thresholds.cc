// Sparsemax and 1.5-entmax by a full sort (Martins & Astudillo 2016, Alg. 1; Peters et al. 2019,
// Alg. 2), top-k by a sort and by libtorch's own selection. Backward in closed form: what the
// packages of the field do, and faster than autograd through the sort.
#include <torch/torch.h>

#include "bench/peers/peers.h"

namespace fovea::bench::peers {
namespace {

at::Tensor ranks(const at::Tensor& sorted) {
  return at::arange(1, sorted.size(-1) + 1, sorted.options());
}

struct SparsemaxFunction : torch::autograd::Function<SparsemaxFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& scores) {
    const at::Tensor sorted = std::get<0>(scores.sort(-1, true));
    const at::Tensor excess = sorted.cumsum(-1) - 1;
    const at::Tensor support = (ranks(sorted) * sorted > excess).sum(-1, true);
    const at::Tensor threshold = excess.gather(-1, support - 1) / support;
    const at::Tensor weights = (scores - threshold).clamp_min_(0);
    context->save_for_backward({weights});
    return weights;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor inside = (context->get_saved_variables()[0] > 0).to(gradients[0].dtype());
    const at::Tensor kept = gradients[0] * inside;
    return {kept - inside * (kept.sum(-1, true) / inside.sum(-1, true))};
  }
};

struct Entmax15Function : torch::autograd::Function<Entmax15Function> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& scores) {
    const at::Tensor half = (scores - scores.amax(-1, true)) / 2;
    const at::Tensor sorted = std::get<0>(half.sort(-1, true));
    const at::Tensor rank = ranks(sorted);
    const at::Tensor mean = sorted.cumsum(-1) / rank;
    const at::Tensor mean_square = (sorted * sorted).cumsum(-1) / rank;
    const at::Tensor variance = rank * (mean_square - mean * mean);
    const at::Tensor thresholds = mean - ((1 - variance) / rank).clamp_min(0).sqrt();
    const at::Tensor support = (thresholds <= sorted).sum(-1, true);
    const at::Tensor weights = (half - thresholds.gather(-1, support - 1)).clamp_min_(0).square_();
    context->save_for_backward({weights});
    return weights;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor root = context->get_saved_variables()[0].sqrt();
    const at::Tensor through = gradients[0] * root;
    return {through - root * (through.sum(-1, true) / root.sum(-1, true))};
  }
};

}  // namespace

at::Tensor sparsemax(const at::Tensor& scores) { return SparsemaxFunction::apply(scores); }

at::Tensor entmax15(const at::Tensor& scores) { return Entmax15Function::apply(scores); }

at::Tensor top_k_sorted(const at::Tensor& scores, int64_t k) {
  const auto [sorted, indices] = scores.sort(-1, true);
  const at::Tensor weights = at::softmax(sorted.narrow(-1, 0, k), -1);
  return at::zeros_like(scores).scatter(-1, indices.narrow(-1, 0, k), weights);
}

at::Tensor top_k_selected(const at::Tensor& scores, int64_t k) {
  const auto [values, indices] = scores.topk(k, -1);
  return at::zeros_like(scores).scatter(-1, indices, at::softmax(values, -1));
}

}  // namespace fovea::bench::peers
