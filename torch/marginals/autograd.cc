// The derivatives of marginals. The Hessian of log Z is symmetric: the gradient of <g, marginals>
// is the derivative of the marginals along g, and that of log Z the marginals themselves. So log Z
// has second derivatives too; what would be a second derivative of the marginals is refused.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "fovea/error.h"
#include "torch/autograd/node.h"
#include "torch/marginals/operators.h"

namespace fovea::operators {
namespace {

Tensor or_zeros(const Tensor& x, const Tensor& like) {
  return x.defined() ? x : at::zeros_like(like, at::MemoryFormat::Contiguous);
}

// What comes from the marginals' gradient and from that of log Z. Where the gradient is to have a
// gradient, `marginals` were computed again: the saved ones have none.
Tensor sum_of(const Tensor& along, const Tensor& d_log_z, const Tensor& marginals) {
  if (!d_log_z.defined()) return along;
  std::vector<c10::SymInt> shape(static_cast<size_t>(marginals.dim()), 1);
  shape[0] = d_log_z.sym_size(0);
  const Tensor scaled = d_log_z.view_symint(shape) * marginals;
  return along.defined() ? along + scaled : scaled;
}

struct ChainNode final : torch::autograd::Node {
  SavedVariable unary, pairwise, lengths, states, transitions;

  std::string name() const override { return "ChainMarginalsBackward"; }
  void release_variables() override {
    const std::lock_guard lock(mutex_);
    for (SavedVariable* x : {&unary, &pairwise, &lengths, &states, &transitions}) x->reset_data();
  }
  variable_list apply(variable_list&& g) override {
    const std::lock_guard lock(mutex_);
    const Tensor u = unary.unpack(), p = pairwise.unpack();
    const OptionalTensor n = optional(lengths.unpack());
    Tensor d_unary, d_pairwise;
    if (g[0].defined() || g[1].defined()) {
      std::tie(d_unary, d_pairwise, std::ignore) =
          chain_marginals_along(u, p, or_zeros(g[0], u), or_zeros(g[1], p), n);
    }
    Tensor z_unary = states.unpack(), z_pairwise = transitions.unpack();
    if (g[2].defined() && at::GradMode::is_enabled())
      std::tie(z_unary, z_pairwise, std::ignore) = computed_chain_marginals(u, p, n);
    return {sum_of(d_unary, g[2], z_unary), sum_of(d_pairwise, g[2], z_pairwise)};
  }
};

struct TreeNode final : torch::autograd::Node {
  SavedVariable arcs, lengths, marginals;

  std::string name() const override { return "TreeMarginalsBackward"; }
  void release_variables() override {
    const std::lock_guard lock(mutex_);
    for (SavedVariable* x : {&arcs, &lengths, &marginals}) x->reset_data();
  }
  variable_list apply(variable_list&& g) override {
    const std::lock_guard lock(mutex_);
    const Tensor a = arcs.unpack();
    const OptionalTensor n = optional(lengths.unpack());
    Tensor d_arcs, z_arcs = marginals.unpack();
    if (g[0].defined()) d_arcs = std::get<0>(tree_marginals_along(a, g[0], n));
    if (g[1].defined() && at::GradMode::is_enabled())
      z_arcs = std::get<0>(computed_tree_marginals(a, n));
    return {sum_of(d_arcs, g[1], z_arcs)};
  }
};

[[noreturn]] void refuse_second_derivative() {
  throw Unsupported(
      "marginals: a second derivative was asked for, expected the first at most (log_partition has "
      "two)");
}

struct SecondDerivative final : torch::autograd::Node {
  std::string name() const override { return "MarginalsDoubleBackward"; }
  variable_list apply(variable_list&&) override { refuse_second_derivative(); }
};

void set_tangent(const Tensor& x, const Tensor& tangent) {
  x._set_fw_grad(tangent, /*level=*/0, /*is_inplace_op=*/false);
}

// <marginals, direction> of each item: the derivative of log Z, with a gradient of its own. What lies
// past an item's length may be NaN.
Tensor of_each_item(const Tensor& marginals, const Tensor& direction) {
  return (marginals * direction.masked_fill(marginals == 0, 0)).flatten(1).sum(1);
}

ChainParts chain_autograd(const Tensor& unary, const Tensor& pairwise,
                          const OptionalTensor& lengths) {
  ChainParts parts = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return computed_chain_marginals(unary, pairwise, lengths);
  }();
  const auto& [states, transitions, log_z] = parts;
  if (torch::autograd::compute_requires_grad(unary, pairwise)) {
    auto node = make_node<ChainNode>();
    node->set_next_edges(torch::autograd::collect_next_edges(unary, pairwise));
    node->unary = SavedVariable(unary, false);
    node->pairwise = SavedVariable(pairwise, false);
    node->lengths = SavedVariable(lengths, false);
    // Views of their own, which have no node to refer back to.
    node->states = SavedVariable(states.detach(), false);
    node->transitions = SavedVariable(transitions.detach(), false);
    torch::autograd::set_history({states, transitions, log_z}, node);
  }
  const Tensor t_unary = tangent_of(unary), t_pairwise = tangent_of(pairwise);
  if (t_unary.defined() || t_pairwise.defined()) {
    const Tensor u = primal_of(unary), p = primal_of(pairwise);
    const Tensor d_unary = or_zeros(t_unary, u), d_pairwise = or_zeros(t_pairwise, p);
    const Tensor c = of_each_item(states, d_unary) + of_each_item(transitions, d_pairwise);
    const auto [a, b, _] = chain_marginals_along(u, p, d_unary, d_pairwise, lengths);
    set_tangent(states, a);
    set_tangent(transitions, b);
    set_tangent(log_z, c);
  }
  return parts;
}

TreeParts tree_autograd(const Tensor& arcs, const OptionalTensor& lengths) {
  TreeParts parts = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return computed_tree_marginals(arcs, lengths);
  }();
  const auto& [marginals, log_z] = parts;
  if (torch::autograd::compute_requires_grad(arcs)) {
    auto node = make_node<TreeNode>();
    node->set_next_edges(torch::autograd::collect_next_edges(arcs));
    node->arcs = SavedVariable(arcs, false);
    node->lengths = SavedVariable(lengths, false);
    node->marginals = SavedVariable(marginals.detach(), false);
    torch::autograd::set_history({marginals, log_z}, node);
  }
  if (const Tensor tangent = tangent_of(arcs); tangent.defined()) {
    const Tensor b = of_each_item(marginals, tangent);
    const Tensor a = std::get<0>(tree_marginals_along(primal_of(arcs), tangent, lengths));
    set_tangent(marginals, a);
    set_tangent(log_z, b);
  }
  return parts;
}

// A second derivative is refused by name: backward when it is computed, forward at once.
template <class... Inputs>
void refuse_second(const variable_list& results, const Inputs&... inputs) {
  if ((tangent_of(inputs).defined() || ...)) refuse_second_derivative();
  if (!torch::autograd::compute_requires_grad(inputs...)) return;
  auto node = make_node<SecondDerivative>();
  node->set_next_edges(torch::autograd::collect_next_edges(inputs...));
  torch::autograd::set_history(results, node);
}

ChainParts chain_along_autograd(const Tensor& unary, const Tensor& pairwise, const Tensor& d_unary,
                                const Tensor& d_pairwise, const OptionalTensor& lengths) {
  ChainParts parts = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return chain_marginals_along(unary, pairwise, d_unary, d_pairwise, lengths);
  }();
  const auto& [a, b, c] = parts;
  refuse_second({a, b, c}, unary, pairwise, d_unary, d_pairwise);
  return parts;
}

TreeParts tree_along_autograd(const Tensor& arcs, const Tensor& d_arcs,
                              const OptionalTensor& lengths) {
  TreeParts parts = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return tree_marginals_along(arcs, d_arcs, lengths);
  }();
  const auto& [a, b] = parts;
  refuse_second({a, b}, arcs, d_arcs);
  return parts;
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, Autograd, m) {
  m.impl("_chain_marginals", chain_autograd);
  m.impl("_chain_marginals_along", chain_along_autograd);
  m.impl("_tree_marginals", tree_autograd);
  m.impl("_tree_marginals_along", tree_along_autograd);
}

}  // namespace fovea::operators
