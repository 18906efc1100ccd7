#include "fovea/nn/fenchel_young.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <sstream>
#include <variant>

namespace fovea::nn {
namespace {

double alpha_of(const Normaliser& normaliser) {
  if (std::holds_alternative<Softmax>(normaliser)) return 1;
  if (std::holds_alternative<Sparsemax>(normaliser)) return 2;
  if (const auto* entmax = std::get_if<Entmax>(&normaliser);
      entmax != nullptr && !entmax->alpha_tensor.defined())
    return entmax->alpha;
  throw InvalidArgument(
      "normaliser: expected softmax, sparsemax, or entmax with a number for alpha");
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// p = normalise(scores). Along d it changes by s (d - s'd / s'1), s = p^(2 - alpha).
struct Distribution : torch::autograd::Function<Distribution> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& scores,
                            const Normaliser& normaliser, double alpha) {
    const at::Tensor flat = scores.reshape({1, 1, -1, scores.size(-1)});
    const at::Tensor p = weights(flat, flat.new_zeros({1, 1, scores.size(-1), 1}),
                                 {.score = Location{}, .normaliser = normaliser})
                             .weights.to(scores.scalar_type())
                             .view_as(scores);
    context->saved_data["alpha"] = alpha;
    context->save_for_backward({p});
    return p;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor p = context->get_saved_variables().at(0), &d = gradients.at(0);
    const double alpha = context->saved_data["alpha"].toDouble();
    const at::Tensor seen = p > 0;
    const at::Tensor s = alpha == 1 ? p : at::where(seen, at::where(seen, p, 1).pow(2 - alpha), 0);
    const at::Tensor total = s.sum(-1, true).clamp_min(1e-30);  // 0 in a row without a class
    return {s * (d - (s * d).sum(-1, true) / total), {}, {}};
  }
};

// p'e for each row, with the gradient p in e and none in p, whose own derivative in the loss is 0
// because p maximises it.
struct Inner : torch::autograd::Function<Inner> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& scores,
                            const at::Tensor& p) {
    context->save_for_backward({p});
    return (p * scores).sum(-1);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients.at(0).unsqueeze(-1) * context->get_saved_variables().at(0), {}};
  }
};

at::Tensor entropy(const at::Tensor& p, double alpha) {
  if (alpha == 1) return -at::xlogy(p, p).sum(-1);
  return (1 - p.pow(alpha).sum(-1)) / (alpha * (alpha - 1));
}

std::string said(at::IntArrayRef sizes) {
  std::ostringstream out;
  out << sizes;
  return out.str();
}

// Targets as rows of probabilities.
at::Tensor rows_of(const at::Tensor& target, const at::Tensor& scores) {
  if (at::isFloatingType(target.scalar_type())) {
    if (target.sizes() != scores.sizes())
      throw InvalidArgument("target: shape " + said(target.sizes()) + ", expected " +
                            said(scores.sizes()) + " (the scores')");
    return target.to(scores.scalar_type());
  }
  const auto rows = scores.sizes().slice(0, static_cast<size_t>(scores.dim()) - 1);
  if (target.scalar_type() != at::kLong || target.sizes() != rows)
    throw InvalidArgument("target: " + std::string(at::toString(target.scalar_type())) +
                          " of shape " + said(target.sizes()) +
                          ", expected classes as int64 of shape " + said(rows) +
                          ", or distributions of the scores' shape");
  const int64_t classes = scores.size(-1);
  if (target.numel() > 0 && (target.lt(0) | target.ge(classes)).any().item<bool>())
    throw InvalidArgument("target: a class of " + std::to_string(target.min().item<int64_t>()) +
                          " to " + std::to_string(target.max().item<int64_t>()) +
                          ", expected 0 to " + std::to_string(classes - 1));
  return at::one_hot(target, classes).to(scores.scalar_type());
}

}  // namespace

at::Tensor fenchel_young_loss(const at::Tensor& scores, const at::Tensor& target,
                              const Normaliser& normaliser) {
  const double alpha = alpha_of(normaliser);
  if (scores.dim() < 1 || scores.size(-1) < 1 || !at::isFloatingType(scores.scalar_type()))
    throw InvalidArgument("scores: shape " + said(scores.sizes()) +
                          ", expected floating-point rows of at least one class");
  const at::Tensor y = rows_of(target, scores);
  const at::Tensor p = Distribution::apply(scores, normaliser, alpha);
  // Each over its own classes: 0 times minus infinity is no loss.
  const at::Tensor product = Inner::apply(scores.masked_fill(p.eq(0), 0), p);
  return product - (y * scores.masked_fill(y.eq(0), 0)).sum(-1) + entropy(p.detach(), alpha) -
         entropy(y, alpha);
}

}  // namespace fovea::nn
