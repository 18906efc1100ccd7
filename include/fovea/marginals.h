// Structured attention: weights that are marginals of a distribution over whole structures, a chain
// of states or a projective tree, instead of a softmax over single keys (Kim et al. 2017).
//
//   const auto p = fovea::chain_marginals(unary, pairwise);   // unary [B, n, 2]
//   const auto read = at::matmul(p.states.select(-1, 1).unsqueeze(1), values);   // [B, 1, Ev]
//
// float32 and float64 are computed as they are, 16-bit types in float32. On the CPU. Differentiable
// once, in reverse and in forward mode; log_partition twice.
#pragma once

#include <ATen/core/Tensor.h>

#include "fovea/error.h"

namespace fovea {

// p(z) is proportional to exp(sum_i unary[i, z_i] + sum_i pairwise[i, z_i, z_{i+1}]).
struct ChainMarginals {
  at::Tensor states;         // p(z_i = s), [B, n, S]
  at::Tensor transitions;    // p(z_i = s, z_{i+1} = t), [B, n - 1, S, S]
  at::Tensor log_partition;  // log of the sum over all chains, [B]
};
// unary [B, n, S]; pairwise [S, S] for every step, or [B, n - 1, S, S]; lengths: int64 [B], or
// undefined for n. Past an item's length everything is 0. O(n S^2).
ChainMarginals chain_marginals(const at::Tensor& unary, const at::Tensor& pairwise,
                               const at::Tensor& lengths = {});

// p(z) is proportional to exp(sum of arcs[head, dependant] over the arcs of z), for projective
// trees in which each of n words has one head: another word, or the root, whose arcs stand on the
// diagonal. Several words may hang from the root.
struct TreeMarginals {
  at::Tensor arcs;           // p(head -> dependant), [B, n, n]: the heads of a word sum to 1
  at::Tensor log_partition;  // [B]
};
// arcs [B, n, n]; lengths as above. O(n^3) time, O(n^2) memory.
TreeMarginals tree_marginals(const at::Tensor& arcs, const at::Tensor& lengths = {});

}  // namespace fovea
