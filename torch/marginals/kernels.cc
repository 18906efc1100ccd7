// The CPU kernels, which call the engine, and shapes without data for torch.compile.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <string>

#include "engine/marginals/marginals.h"
#include "fovea/error.h"
#include "torch/engine_call.h"
#include "torch/marginals/operators.h"

namespace fovea::operators {
namespace {

const int64_t* numbers_of(const Tensor& lengths, int64_t n) {
  if (!lengths.defined()) return nullptr;
  const auto* data = lengths.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < lengths.numel(); ++i) {
    if (data[i] < 0 || data[i] > n)
      throw InvalidArgument("lengths[" + std::to_string(i) + "]: " + std::to_string(data[i]) +
                            ", expected 0 .. " + std::to_string(n));
  }
  return data;
}

Tensor plain(const OptionalTensor& x) { return x ? x->contiguous() : Tensor(); }

ChainParts chain_results(const Tensor& unary, const Tensor& pairwise) {
  return {at::empty_symint(unary.sym_sizes(), unary.options()),
          at::empty_symint(pairwise.sym_sizes(), unary.options()),
          at::empty_symint({unary.sym_size(0)}, unary.options())};
}
TreeParts tree_results(const Tensor& arcs) {
  return {at::empty_symint(arcs.sym_sizes(), arcs.options()),
          at::empty_symint({arcs.sym_size(0)}, arcs.options())};
}

// `call` is given the engine's problem and results.
template <class Call>
ChainParts chain_run(const Tensor& unary, const Tensor& pairwise, const OptionalTensor& lengths,
                     const Call& call) {
  const ChainParts results = chain_results(unary, pairwise);
  const Tensor u = unary.contiguous(), n = plain(lengths);
  // One matrix for all steps stays one: an expanded tensor is not copied.
  const bool matrices = pairwise.stride(3) == 1 && pairwise.stride(2) == pairwise.size(3);
  const Tensor p = matrices ? pairwise : pairwise.contiguous();
  AT_DISPATCH_FLOATING_TYPES(unary.scalar_type(), "chain_marginals", [&] {
    const engine::Chain<scalar_t> chain{
        static_cast<size_t>(u.size(0)),   static_cast<size_t>(u.size(1)),
        static_cast<size_t>(u.size(2)),   u.const_data_ptr<scalar_t>(),
        p.const_data_ptr<scalar_t>(),     static_cast<size_t>(p.stride(0)),
        static_cast<size_t>(p.stride(1)), numbers_of(n, u.size(1))};
    call(chain, p,
         engine::ChainResult<scalar_t>{std::get<0>(results).mutable_data_ptr<scalar_t>(),
                                       std::get<1>(results).mutable_data_ptr<scalar_t>(),
                                       std::get<2>(results).mutable_data_ptr<scalar_t>()});
  });
  return results;
}

ChainParts chain_cpu(const Tensor& unary, const Tensor& pairwise, const OptionalTensor& lengths) {
  return chain_run(unary, pairwise, lengths,
                   [](const auto& chain, const Tensor&, const auto& result) {
                     engine::marginals(chain, result, torch_parallel());
                   });
}

ChainParts chain_along_cpu(const Tensor& unary, const Tensor& pairwise, const Tensor& d_unary,
                           const Tensor& d_pairwise, const OptionalTensor& lengths) {
  const Tensor u = d_unary.contiguous();
  // The direction of an expanded matrix differs from step to step.
  const Tensor all = pairwise.contiguous(), p = d_pairwise.contiguous();
  return chain_run(unary, all, lengths,
                   [&]<class T>(const engine::Chain<T>& chain, const Tensor&,
                                const engine::ChainResult<T>& result) {
                     engine::marginals_along(chain, u.const_data_ptr<T>(), p.const_data_ptr<T>(),
                                             result, torch_parallel());
                   });
}

template <class Call>
TreeParts tree_run(const Tensor& arcs, const OptionalTensor& lengths, const Call& call) {
  const TreeParts results = tree_results(arcs);
  const Tensor a = arcs.contiguous(), n = plain(lengths);
  AT_DISPATCH_FLOATING_TYPES(arcs.scalar_type(), "tree_marginals", [&] {
    const engine::Tree<scalar_t> tree{static_cast<size_t>(a.size(0)),
                                      static_cast<size_t>(a.size(1)), a.const_data_ptr<scalar_t>(),
                                      numbers_of(n, a.size(1))};
    call(tree, engine::TreeResult<scalar_t>{std::get<0>(results).mutable_data_ptr<scalar_t>(),
                                            std::get<1>(results).mutable_data_ptr<scalar_t>()});
  });
  return results;
}

TreeParts tree_cpu(const Tensor& arcs, const OptionalTensor& lengths) {
  return tree_run(arcs, lengths, [](const auto& tree, const auto& result) {
    engine::marginals(tree, result, torch_parallel());
  });
}

TreeParts tree_along_cpu(const Tensor& arcs, const Tensor& d_arcs, const OptionalTensor& lengths) {
  const Tensor direction = d_arcs.contiguous();
  return tree_run(arcs, lengths,
                  [&]<class T>(const engine::Tree<T>& tree, const engine::TreeResult<T>& result) {
                    engine::marginals_along(tree, direction.const_data_ptr<T>(), result,
                                            torch_parallel());
                  });
}

ChainParts chain_meta(const Tensor& unary, const Tensor& pairwise, const OptionalTensor&) {
  return chain_results(unary, pairwise);
}
ChainParts chain_along_meta(const Tensor& unary, const Tensor& pairwise, const Tensor&,
                            const Tensor&, const OptionalTensor&) {
  return chain_results(unary, pairwise);
}
TreeParts tree_meta(const Tensor& arcs, const OptionalTensor&) { return tree_results(arcs); }
TreeParts tree_along_meta(const Tensor& arcs, const Tensor&, const OptionalTensor&) {
  return tree_results(arcs);
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, CPU, m) {
  m.impl("_chain_marginals", chain_cpu);
  m.impl("_chain_marginals_along", chain_along_cpu);
  m.impl("_tree_marginals", tree_cpu);
  m.impl("_tree_marginals_along", tree_along_cpu);
}
TORCH_LIBRARY_IMPL(fovea, Meta, m) {
  m.impl("_chain_marginals", chain_meta);
  m.impl("_chain_marginals_along", chain_along_meta);
  m.impl("_tree_marginals", tree_meta);
  m.impl("_tree_marginals_along", tree_along_meta);
}

}  // namespace fovea::operators
