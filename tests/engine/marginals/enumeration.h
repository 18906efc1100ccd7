// Chains and trees summed one by one, in double precision: what marginals are compared with.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace fovea::engine::testing {

using Doubles = std::vector<double>;

inline Doubles normals(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Doubles x(count);
  for (double& value : x) value = normal(generator);
  return x;
}

struct ChainSums {
  Doubles unary, pairwise;  // marginals
  double log_partition;
};
// unary [n, states], pairwise [n - 1, states, states].
inline ChainSums every_chain(const Doubles& unary, const Doubles& pairwise, size_t n,
                             size_t states) {
  ChainSums sums{Doubles(unary.size()), Doubles(pairwise.size()), 0};
  double z = 0;
  std::vector<size_t> state(n, 0);
  for (;;) {
    double score = 0;
    for (size_t i = 0; i < n; ++i) score += unary[i * states + state[i]];
    for (size_t i = 0; i + 1 < n; ++i)
      score += pairwise[(i * states + state[i]) * states + state[i + 1]];
    const double mass = std::exp(score);
    z += mass;
    for (size_t i = 0; i < n; ++i) sums.unary[i * states + state[i]] += mass;
    for (size_t i = 0; i + 1 < n; ++i)
      sums.pairwise[(i * states + state[i]) * states + state[i + 1]] += mass;
    size_t i = 0;
    while (i < n && ++state[i] == states) state[i++] = 0;
    if (i == n) break;
  }
  for (double& x : sums.unary) x /= z;
  for (double& x : sums.pairwise) x /= z;
  sums.log_partition = std::log(z);
  return sums;
}

struct TreeSums {
  Doubles arcs;  // marginals
  double log_partition;
  size_t trees;
};
// arcs [n, n], the root's on the diagonal. Heads are tried in every way; a tree has no cycle, and it
// is projective where, with the root to the left of all words, no two arcs cross.
inline TreeSums every_tree(const Doubles& arcs, size_t n) {
  TreeSums sums{Doubles(arcs.size()), 0, 0};
  double z = 0;
  std::vector<size_t> head(n, 0);  // head[w] == w: the root
  const auto is_tree = [&] {
    for (size_t w = 0; w < n; ++w) {
      size_t at = w, steps = 0;
      while (head[at] != at && steps++ <= n) at = head[at];
      if (steps > n) return false;
    }
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) {
        const auto ends = [&](size_t w) {
          const size_t h = head[w] == w ? 0 : head[w] + 1;
          return std::pair(std::min(h, w + 1), std::max(h, w + 1));
        };
        const auto [a_low, a_high] = ends(a);
        const auto [b_low, b_high] = ends(b);
        if (a_low < b_low && b_low < a_high && a_high < b_high) return false;
      }
    }
    return true;
  };
  for (;;) {
    if (is_tree()) {
      double score = 0;
      for (size_t w = 0; w < n; ++w) score += arcs[head[w] * n + w];
      const double mass = std::exp(score);
      z += mass;
      ++sums.trees;
      for (size_t w = 0; w < n; ++w) sums.arcs[head[w] * n + w] += mass;
    }
    size_t w = 0;
    while (w < n && ++head[w] == n) head[w++] = 0;
    if (w == n) break;
  }
  for (double& x : sums.arcs) x /= z;
  sums.log_partition = std::log(z);
  return sums;
}

}  // namespace fovea::engine::testing
