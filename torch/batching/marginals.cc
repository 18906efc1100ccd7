// torch.vmap on the operators of marginals: the mapped dimension is joined to the items, so that one
// call computes all.
#include <torch/library.h>

#include "torch/batching/mapped.h"
#include "torch/marginals/operators.h"

namespace fovea::operators {
namespace {

// [mapped, items, ...] as [mapped items, ...], and back.
Tensor joined(const Mapped& x, int64_t count) { return x.first(count).flatten(0, 1); }
OptionalTensor joined(const std::optional<Mapped>& x, int64_t count) {
  return x ? OptionalTensor(joined(*x, count)) : std::nullopt;
}
template <class Vmap>
Tensor parted(const Level<Vmap>& level, const Tensor& x) {
  return level.give(x.unflatten(0, {level.count(), x.size(0) / level.count()}), 0);
}

template <class Vmap>
ChainParts given(const Level<Vmap>& level, const ChainParts& parts) {
  const auto& [states, transitions, log_z] = parts;
  return {parted(level, states), parted(level, transitions), parted(level, log_z)};
}
template <class Vmap>
TreeParts given(const Level<Vmap>& level, const TreeParts& parts) {
  const auto& [marginals, log_z] = parts;
  return {parted(level, marginals), parted(level, log_z)};
}

template <class Vmap>
ChainParts chain_batched(const Tensor& unary, const Tensor& pairwise,
                         const OptionalTensor& lengths) {
  Level<Vmap> level;
  const Mapped u = level.take(unary), p = level.take(pairwise);
  const auto n = level.take(lengths);
  const int64_t count = level.count();
  if (count == 0) return computed_chain_marginals(unary, pairwise, lengths);
  return given(level,
               computed_chain_marginals(joined(u, count), joined(p, count), joined(n, count)));
}

template <class Vmap>
ChainParts chain_along_batched(const Tensor& unary, const Tensor& pairwise, const Tensor& d_unary,
                               const Tensor& d_pairwise, const OptionalTensor& lengths) {
  Level<Vmap> level;
  const Mapped u = level.take(unary), p = level.take(pairwise), du = level.take(d_unary),
               dp = level.take(d_pairwise);
  const auto n = level.take(lengths);
  const int64_t count = level.count();
  if (count == 0) return chain_marginals_along(unary, pairwise, d_unary, d_pairwise, lengths);
  return given(level, chain_marginals_along(joined(u, count), joined(p, count), joined(du, count),
                                            joined(dp, count), joined(n, count)));
}

template <class Vmap>
TreeParts tree_batched(const Tensor& arcs, const OptionalTensor& lengths) {
  Level<Vmap> level;
  const Mapped a = level.take(arcs);
  const auto n = level.take(lengths);
  const int64_t count = level.count();
  if (count == 0) return computed_tree_marginals(arcs, lengths);
  return given(level, computed_tree_marginals(joined(a, count), joined(n, count)));
}

template <class Vmap>
TreeParts tree_along_batched(const Tensor& arcs, const Tensor& d_arcs,
                             const OptionalTensor& lengths) {
  Level<Vmap> level;
  const Mapped a = level.take(arcs), d = level.take(d_arcs);
  const auto n = level.take(lengths);
  const int64_t count = level.count();
  if (count == 0) return tree_marginals_along(arcs, d_arcs, lengths);
  return given(level, tree_marginals_along(joined(a, count), joined(d, count), joined(n, count)));
}

template <class Vmap>
void register_marginals(torch::Library& m) {
  // What users call brings its arguments into one form; libtorch would call it item by item.
  m.impl("chain_marginals", formed_chain_marginals);
  m.impl("tree_marginals", formed_tree_marginals);
  m.impl("_chain_marginals", chain_batched<Vmap>);
  m.impl("_chain_marginals_along", chain_along_batched<Vmap>);
  m.impl("_tree_marginals", tree_batched<Vmap>);
  m.impl("_tree_marginals_along", tree_along_batched<Vmap>);
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, FuncTorchBatched, m) { register_marginals<FuncVmap>(m); }
TORCH_LIBRARY_IMPL(fovea, Batched, m) { register_marginals<GradientsVmap>(m); }

}  // namespace fovea::operators
