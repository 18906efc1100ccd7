// Marginals of structured distributions: p(z) is proportional to exp(sum of the scores of z's parts),
// and the marginal of a part is the probability that z has it. Batched and ragged.
//
// log Z is the log of the sum over all z. Marginals are its gradient. Their own derivative is its
// Hessian, which is symmetric: so one operation, the derivative of the marginals along a direction,
// serves forward mode and, with the gradient of the marginals as the direction, reverse mode.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fovea/engine.h"

namespace fovea::engine {

// A chain of n variables with `states` values each:
//   score(z) = sum_i unary[i][z_i] + sum_i pairwise[i][z_i][z_{i+1}],
// each unary score counted once. O(n states^2) time and memory.
template <class T>
struct Chain {
  size_t batch = 0, n = 0, states = 0;
  const T* unary = nullptr;     // [batch, n, states]
  const T* pairwise = nullptr;  // [batch, n - 1, states, states], with these strides; 0 repeats one
  size_t pairwise_item = 0, pairwise_step = 0;
  const int64_t* lengths = nullptr;  // [batch] of 1 .. n, or null: all n
};
// What is wanted of it; each may be null. Positions past an item's length get 0.
template <class T>
struct ChainResult {
  T* unary = nullptr;          // p(z_i = s), [batch, n, states]
  T* pairwise = nullptr;       // p(z_i = s, z_{i+1} = t), [batch, n - 1, states, states]
  T* log_partition = nullptr;  // log Z, [batch]
};

// Projective dependency trees over n words, each with one head, another word or the root:
//   score(z) = sum over the arcs of z of arcs[head][dependant]; the root's are on the diagonal.
// Several words may hang from the root. O(n^3) time, O(n^2) memory.
template <class T>
struct Tree {
  size_t batch = 0, n = 0;
  const T* arcs = nullptr;           // [batch, n, n]
  const int64_t* lengths = nullptr;  // [batch] of 1 .. n, or null: all n
};
template <class T>
struct TreeResult {
  T* arcs = nullptr;           // p(head -> dependant), [batch, n, n]; past an item's length 0
  T* log_partition = nullptr;  // [batch]
};

// Instantiated for float and double. Items of a batch fill the lanes of a vector.
template <class T>
void marginals(const Chain<T>& chain, const ChainResult<T>& result, const Parallel& parallel);
template <class T>
void marginals(const Tree<T>& tree, const TreeResult<T>& result, const Parallel& parallel);

// The derivative of all that `marginals` gives along `direction`, whose arrays are laid out as the
// scores' (of a chain with the same strides; null: 0).
template <class T>
void marginals_along(const Chain<T>& chain, const T* unary_direction, const T* pairwise_direction,
                     const ChainResult<T>& result, const Parallel& parallel);
template <class T>
void marginals_along(const Tree<T>& tree, const T* direction, const TreeResult<T>& result,
                     const Parallel& parallel);

}  // namespace fovea::engine
