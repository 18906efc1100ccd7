#include "torch/marginals/operators.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <string>

#include "fovea/marginals.h"
#include "torch/find_operator.h"

namespace fovea::operators {
namespace {

std::string shape_of(const Tensor& x) {
  std::string text = "[";
  for (int64_t i = 0; i < x.dim(); ++i)
    text += (i ? ", " : "") + (x.sym_size(i).maybe_as_int()
                                   ? std::to_string(x.sym_size(i).guard_int(__FILE__, __LINE__))
                                   : std::string("?"));
  return text + "]";
}

void check_scores(const char* name, const Tensor& x, int64_t rank, const char* expected) {
  if (x.dim() != rank)
    throw InvalidArgument(std::string(name) + ": " + shape_of(x) + ", expected " + expected);
  if (!x.is_floating_point())
    throw InvalidArgument(std::string(name) + ": " + c10::toString(x.scalar_type()) +
                          ", expected a floating-point type");
  if (x.sym_size(1) < 1)
    throw InvalidArgument(std::string(name) + ": " + shape_of(x) +
                          ", expected at least one position");
  if (!x.is_cpu() && !x.is_meta())
    throw Unsupported(std::string(name) + ": on " + x.device().str() +
                      ", expected the CPU; marginals have no kernel for another device");
}

// The kernels read both where the scores lie.
void check_same_device(const char* name, const Tensor& x, const char* scores_name,
                       const Tensor& scores) {
  if (x.device() != scores.device())
    throw InvalidArgument(std::string(name) + ": on " + x.device().str() + ", expected " +
                          scores.device().str() + " as " + scores_name);
}

void check_lengths(const OptionalTensor& lengths, const char* scores_name, const Tensor& scores) {
  if (!lengths) return;
  check_same_device("lengths", *lengths, scores_name, scores);
  if (lengths->dim() != 1 || lengths->sym_size(0) != scores.sym_size(0) ||
      !at::isIntegralType(lengths->scalar_type(), /*includeBool=*/false)) {
    throw InvalidArgument("lengths: " + shape_of(*lengths) + " of " +
                          c10::toString(lengths->scalar_type()) +
                          ", expected one integer for each item");
  }
}

OptionalTensor longs(const OptionalTensor& lengths) {
  return lengths ? OptionalTensor(lengths->to(at::kLong)) : std::nullopt;
}

}  // namespace

ChainParts formed_chain_marginals(const Tensor& unary, const Tensor& pairwise,
                                  const OptionalTensor& lengths) {
  check_scores("unary", unary, 3, "[items, positions, states]");
  check_lengths(lengths, "unary", unary);
  const auto items = unary.sym_size(0), states = unary.sym_size(2);
  const auto steps = unary.sym_size(1) - 1;
  const bool shared = pairwise.dim() == 2;
  if ((!shared && pairwise.dim() != 4) || pairwise.sym_size(-1) != states ||
      pairwise.sym_size(-2) != states ||
      (!shared && (pairwise.sym_size(0) != items || pairwise.sym_size(1) != steps))) {
    throw InvalidArgument("pairwise: " + shape_of(pairwise) +
                          ", expected [states, states] or [items, positions - 1, states, states] "
                          "for unary " +
                          shape_of(unary));
  }
  check_same_device("pairwise", pairwise, "unary", unary);
  const auto type = arithmetic_type(unary);
  const auto [p, q, z] = computed_chain_marginals(
      unary.to(type), pairwise.to(type).expand_symint({items, steps, states, states}),
      longs(lengths));
  return {p.to(unary.scalar_type()), q.to(unary.scalar_type()), z.to(unary.scalar_type())};
}

TreeParts formed_tree_marginals(const Tensor& arcs, const OptionalTensor& lengths) {
  check_scores("arcs", arcs, 3, "[items, words, words]");
  check_lengths(lengths, "arcs", arcs);
  if (arcs.sym_size(1) != arcs.sym_size(2))
    throw InvalidArgument("arcs: " + shape_of(arcs) + ", expected [items, words, words]");
  const auto [p, z] = computed_tree_marginals(arcs.to(arithmetic_type(arcs)), longs(lengths));
  return {p.to(arcs.scalar_type()), z.to(arcs.scalar_type())};
}

TORCH_LIBRARY_FRAGMENT(fovea, m) {
  m.def(
      "chain_marginals(Tensor unary, Tensor pairwise, Tensor? lengths=None) -> (Tensor states, "
      "Tensor transitions, Tensor log_partition)",
      formed_chain_marginals);
  m.def(
      "_chain_marginals(Tensor unary, Tensor pairwise, Tensor? lengths) -> (Tensor, Tensor, "
      "Tensor)");
  m.def(
      "_chain_marginals_along(Tensor unary, Tensor pairwise, Tensor d_unary, Tensor d_pairwise, "
      "Tensor? lengths) -> (Tensor, Tensor, Tensor)");
  m.def(
      "tree_marginals(Tensor arcs, Tensor? lengths=None) -> (Tensor arcs_marginals, Tensor "
      "log_partition)",
      formed_tree_marginals);
  m.def("_tree_marginals(Tensor arcs, Tensor? lengths) -> (Tensor, Tensor)");
  m.def("_tree_marginals_along(Tensor arcs, Tensor d_arcs, Tensor? lengths) -> (Tensor, Tensor)");
}

ChainParts computed_chain_marginals(const Tensor& unary, const Tensor& pairwise,
                                    const OptionalTensor& lengths) {
  static const auto op = find_operator<ChainMarginalsOperator>("fovea::_chain_marginals");
  return op.call(unary, pairwise, lengths);
}
ChainParts chain_marginals_along(const Tensor& unary, const Tensor& pairwise, const Tensor& d_unary,
                                 const Tensor& d_pairwise, const OptionalTensor& lengths) {
  static const auto op = find_operator<ChainAlong>("fovea::_chain_marginals_along");
  return op.call(unary, pairwise, d_unary, d_pairwise, lengths);
}
TreeParts computed_tree_marginals(const Tensor& arcs, const OptionalTensor& lengths) {
  static const auto op = find_operator<TreeMarginalsOperator>("fovea::_tree_marginals");
  return op.call(arcs, lengths);
}
TreeParts tree_marginals_along(const Tensor& arcs, const Tensor& d_arcs,
                               const OptionalTensor& lengths) {
  static const auto op = find_operator<TreeAlong>("fovea::_tree_marginals_along");
  return op.call(arcs, d_arcs, lengths);
}

}  // namespace fovea::operators

namespace fovea {

ChainMarginals chain_marginals(const at::Tensor& unary, const at::Tensor& pairwise,
                               const at::Tensor& lengths) {
  auto [states, transitions, log_partition] = operators::formed_chain_marginals(
      unary, pairwise, lengths.defined() ? std::optional(lengths) : std::nullopt);
  return {states, transitions, log_partition};
}

TreeMarginals tree_marginals(const at::Tensor& arcs, const at::Tensor& lengths) {
  auto [marginals, log_partition] = operators::formed_tree_marginals(
      arcs, lengths.defined() ? std::optional(lengths) : std::nullopt);
  return {marginals, log_partition};
}

}  // namespace fovea
