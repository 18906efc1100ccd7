// Inside-outside over projective trees, by Eisner's spans. Word 0 is the root. With s < t:
//   joined[s][t] = log sum_{s <= k < t} exp(right[s][k] + left[k + 1][t]),
//   right[s][t]  = log sum_{s < k <= t} exp(joined[s][k] + arc(s -> k) + right[k][t]),
//   left[s][t]   = log sum_{s <= k < t} exp(left[s][k] + joined[k][t] + arc(t -> k)),
//   right[i][i] = left[i][i] = 0,  log Z = right[0][n]:
// right[s][t] sums over the subtrees of s that cover s .. t, left[s][t] over those of t. Then the
// gradient of log Z, from the widest span down: the gradient of a span is passed to its parts in
// proportion to their terms of its sum. The gradient of an arc is its marginal.
#include <vector>

#include "engine/marginals/marginals.h"
#include "engine/runtime/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/marginals/tree.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/marginals/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace tree {

namespace hn = hwy::HWY_NAMESPACE;

// A square of numbers over pairs of words, the root included.
template <class N, class T>
class Table {
 public:
  explicit Table(size_t words)
      : words_(words),
        cell_(N::kVectors * hn::Lanes(hn::ScalableTag<T>())),
        cells_(words * words * cell_) {}
  HWY_INLINE T* at(size_t s, size_t t) { return cells_.data() + (s * words_ + t) * cell_; }
  HWY_INLINE N operator()(size_t s, size_t t) const {
    return N::load(cells_.data() + (s * words_ + t) * cell_);
  }

 private:
  size_t words_, cell_;
  std::vector<T> cells_;  // 0 at first
};

// N: Plain or Dual. One vector of items.
template <class N, class T>
class Block {
 public:
  Block(const Tree<T>& tree, const T* along, const TreeResult<T>& result, size_t first)
      : tree_(tree),
        along_(along),
        result_(result),
        items_(first, tree.batch, tree.lengths, tree.n),
        n_(static_cast<size_t>(items_.longest)),
        arc_(n_ + 1),
        joined_(n_ + 1),
        right_(n_ + 1),
        left_(n_ + 1) {}

  void run() {
    for (size_t head = 0; head < n_; ++head)
      for (size_t word = 0; word < n_; ++word)
        read_arc(head, word).store(arc_.at(head == word ? 0 : head + 1, word + 1));
    inside();
    N log_z = N::of(T(0));
    for (size_t t = 1; t <= n_; ++t) log_z = items_.where_length_is(t, right_(0, t), log_z);
    if (result_.log_partition) items_.write(log_z.result(), result_.log_partition, 1);
    if (result_.arcs) outside();
  }

 private:
  HWY_INLINE N read_arc(size_t head, size_t word) const {
    const size_t at = head * tree_.n + word;
    return lanes::read(N::of(T(0)), items_, tree_.arcs + at, along_ ? along_ + at : nullptr,
                       tree_.n * tree_.n, HWY_MAX(head, word));
  }
  // The terms of the three sums.
  HWY_INLINE N joined_part(size_t s, size_t t, size_t k) const {
    return right_(s, k) + left_(k + 1, t);
  }
  HWY_INLINE N right_part(size_t s, size_t t, size_t k) const {
    return joined_(s, k) + arc_(s, k) + right_(k, t);
  }
  HWY_INLINE N left_part(size_t s, size_t t, size_t k) const {
    return left_(s, k) + joined_(k, t) + arc_(t, k);
  }

  void inside() {
    const N zero = N::of(T(0));
    for (size_t width = 1; width <= n_; ++width) {
      for (size_t s = 0; s + width <= n_; ++s) {
        const size_t t = s + width;
        lanes::log_sum_exp(zero, s, t, [&](size_t k) {
          return joined_part(s, t, k);
        }).store(joined_.at(s, t));
        lanes::log_sum_exp(zero, s + 1, t + 1, [&](size_t k) {
          return right_part(s, t, k);
        }).store(right_.at(s, t));
        if (s == 0) continue;  // the root has no head
        lanes::log_sum_exp(zero, s, t, [&](size_t k) {
          return left_part(s, t, k);
        }).store(left_.at(s, t));
      }
    }
  }

  void outside() {
    Table<N, T> right_count(n_ + 1), left_count(n_ + 1), arc_count(n_ + 1);
    for (size_t t = 1; t <= n_; ++t) {
      items_.where_length_is(t, N::of(T(1)), N::of(T(0))).store(right_count.at(0, t));
    }
    for (size_t width = n_; width >= 1; --width) {
      for (size_t s = 0; s + width <= n_; ++s) {
        const size_t t = s + width;
        const N right_total = right_(s, t), counted_right = right_count(s, t);
        for (size_t k = s + 1; k <= t; ++k) {
          const N part = lanes::share(right_part(s, t, k), right_total, counted_right);
          lanes::add(arc_count.at(s, k), part);
          lanes::add(right_count.at(k, t), part);
        }
        const N left_total = left_(s, t), counted_left = left_count(s, t);
        for (size_t k = s; s > 0 && k < t; ++k) {
          const N part = lanes::share(left_part(s, t, k), left_total, counted_left);
          lanes::add(left_count.at(s, k), part);
          lanes::add(arc_count.at(t, k), part);
        }
        // Both arcs between s and t close over the same two halves.
        const N joined_total = joined_(s, t), counted_joined = arc_count(s, t) + arc_count(t, s);
        for (size_t k = s; k < t; ++k) {
          const N part = lanes::share(joined_part(s, t, k), joined_total, counted_joined);
          lanes::add(right_count.at(s, k), part);
          lanes::add(left_count.at(k + 1, t), part);
        }
      }
    }
    for (size_t head = 0; head < tree_.n; ++head) {
      for (size_t word = 0; word < tree_.n; ++word) {
        const bool inside = head < n_ && word < n_;
        const auto count = inside ? arc_count(head == word ? 0 : head + 1, word + 1).result()
                                  : hn::Zero(hn::ScalableTag<T>());
        items_.write(count, result_.arcs + head * tree_.n + word, tree_.n * tree_.n);
      }
    }
  }

  const Tree<T>& tree_;
  const T* along_;
  const TreeResult<T>& result_;
  lanes::Items<T> items_;
  size_t n_;
  Table<N, T> arc_, joined_, right_, left_;
};

template <class N, class T>
void run(const Tree<T>& tree, const T* along, const TreeResult<T>& result,
         const Parallel& parallel) {
  const size_t wide = hn::Lanes(hn::ScalableTag<T>());
  const size_t blocks = (tree.batch + wide - 1) / wide;
  const double n = static_cast<double>(tree.n);
  // Six sums of n^3 / 6 terms in all, each with an exp, worth some twenty multiply-adds.
  const double work = 20.0 * static_cast<double>(tree.batch) * n * n * n;
  run_tickets(worth(parallel, work), blocks,
              [&](size_t, size_t block) { Block<N, T>(tree, along, result, block * wide).run(); });
}

}  // namespace tree

#define FOVEA_TREE(NAME, T, NUMBER)                                           \
  void NAME(const Tree<T>& tree, const T* along, const TreeResult<T>& result, \
            const Parallel& parallel) {                                       \
    tree::run<lanes::NUMBER<T>>(tree, along, result, parallel);               \
  }
FOVEA_TREE(tree_f32, float, Plain)
FOVEA_TREE(tree_f64, double, Plain)
FOVEA_TREE(tree_along_f32, float, Dual)
FOVEA_TREE(tree_along_f64, double, Dual)
#undef FOVEA_TREE

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(tree_f32);
HWY_EXPORT(tree_f64);
HWY_EXPORT(tree_along_f32);
HWY_EXPORT(tree_along_f64);

template <>
void marginals(const Tree<float>& tree, const TreeResult<float>& result, const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(tree_f32)(tree, nullptr, result, parallel);
}
template <>
void marginals(const Tree<double>& tree, const TreeResult<double>& result,
               const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(tree_f64)(tree, nullptr, result, parallel);
}
template <>
void marginals_along(const Tree<float>& tree, const float* direction,
                     const TreeResult<float>& result, const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(tree_along_f32)(tree, direction, result, parallel);
}
template <>
void marginals_along(const Tree<double>& tree, const double* direction,
                     const TreeResult<double>& result, const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(tree_along_f64)(tree, direction, result, parallel);
}
}  // namespace fovea::engine
#endif
