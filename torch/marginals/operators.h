// The operators of marginals. chain_marginals and tree_marginals, which users call, bring their
// arguments into one form; those with an underscore compute. The derivative of marginals along a
// direction serves forward and reverse mode: see engine/marginals/marginals.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace fovea::operators {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// states, transitions, log_partition.
using ChainParts = std::tuple<Tensor, Tensor, Tensor>;
// arcs, log_partition.
using TreeParts = std::tuple<Tensor, Tensor>;

using ChainMarginalsOperator = ChainParts(const Tensor& unary, const Tensor& pairwise,
                                          const OptionalTensor& lengths);
using ChainAlong = ChainParts(const Tensor& unary, const Tensor& pairwise, const Tensor& d_unary,
                              const Tensor& d_pairwise, const OptionalTensor& lengths);
using TreeMarginalsOperator = TreeParts(const Tensor& arcs, const OptionalTensor& lengths);
using TreeAlong = TreeParts(const Tensor& arcs, const Tensor& d_arcs,
                            const OptionalTensor& lengths);

// What users call: checks, conversions, then the operators below.
ChainMarginalsOperator formed_chain_marginals;
TreeMarginalsOperator formed_tree_marginals;

// Through the dispatcher.
ChainMarginalsOperator computed_chain_marginals;
ChainAlong chain_marginals_along;
TreeMarginalsOperator computed_tree_marginals;
TreeAlong tree_marginals_along;

}  // namespace fovea::operators
