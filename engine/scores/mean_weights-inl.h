// What the loops of kernel means share: the distance of a pair, and its weight and slope by value
// or by logarithm.
#if defined(FOVEA_ENGINE_MEAN_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_MEAN_WEIGHTS_INL_H_
#undef FOVEA_ENGINE_MEAN_WEIGHTS_INL_H_
#else
#define FOVEA_ENGINE_MEAN_WEIGHTS_INL_H_
#endif

#include <array>

#include "engine/paths/kernel_mean.h"
#include "engine/scores/kernel_functions-inl.h"
#include "engine/simd/subnormals.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace kernel_mean {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t N = HWY_LANES(float);
constexpr size_t kWidth = kMeanWidth, kQueries = 4;

// A pair's z = u^2, as |q - k|^2 and b^2: some kernels take the factor for nothing. Kernels of u
// have b.
struct Distance {
  V square, scale;
  HWY_INLINE V z() const { return hn::Mul(square, scale); }
};

struct Both {
  V weight, fall;
};
// Kernels fall: their slopes are negations, and the two signs cost nothing.
HWY_INLINE Both negated(const kernel::ValueAndSlope<V>& x) { return {x.value, hn::Neg(x.slope)}; }

// A weight is finish(start(pair)). Where that is worth it (kAhead) a loop starts the next vector of
// keys before it finishes this one: roots take the divider a dozen cycles each, and what waits for
// them would fill the scheduler.
//
// K itself, and -K'(u) / u. Distances are numbers: the path declines operands that are not finite, or so
// large that a difference's square is not.
template <template <class> class Kernel>
struct ByValue {
  static constexpr bool kAhead = requires { typename Kernel<D>::AtRoot; };
  static constexpr bool kScaled = requires(V x) {
    Kernel<D>::scaled_value(D(), x, x), Kernel<D>::slope_of_value(x);
  };
  static constexpr bool kNumber = requires(V x) { Kernel<D>::value_at_number(D(), x); };
  static HWY_INLINE V start(const Distance& x, V) {
    if constexpr (kAhead)
      return hn::Sqrt(x.square);
    else if constexpr (kScaled)
      return Kernel<D>::scaled_value(D(), x.square, x.scale);
    else if constexpr (kNumber)
      return Kernel<D>::value_at_number(D(), x.z());
    else
      return Kernel<D>::value(D(), x.z());
  }
  static HWY_INLINE V finish(V started, V scale) {
    if constexpr (kAhead)
      return Kernel<D>::AtRoot::value(D(), started, scale);
    else
      return started;
  }
  // Of a pair started for both.
  static HWY_INLINE V start_both(const Distance& x, V base) {
    if constexpr (kAhead)
      return kernel::not_zero(D(), start(x, base), x.scale);
    else
      return start(x, base);
  }
  static HWY_INLINE Both both(const Distance& x, V started) {
    if constexpr (kAhead)
      return negated(Kernel<D>::AtRoot::both(D(), started));
    else if constexpr (kScaled)
      return negated({started, Kernel<D>::slope_of_value(started)});
    else
      return negated({started, Kernel<D>::slope(D(), x.z())});
  }
};
// exp(log K - base), and that times -(log K)'(u) / u.
template <template <class> class Kernel>
struct ByLog {
  static constexpr bool kAhead = false;
  static HWY_INLINE V start(const Distance& x, V base) {
    return exp_bounded(D(), hn::Sub(Kernel<D>::log_value(D(), x.z()), base));
  }
  static HWY_INLINE V finish(V started, V) { return started; }
  static HWY_INLINE V start_both(const Distance& x, V base) { return start(x, base); }
  static HWY_INLINE Both both(const Distance& x, V started) {
    return negated(
        {started, hn::Mul(started, Kernel<D>::log_slope(D(), kernel::not_infinite(D(), x.z())))});
  }
};

inline size_t stride(const MeanBlock& m) { return (kWidth + m.values) * N; }

// A query in every lane, b as its loops want it.
template <class Weight>
HWY_INLINE void spread(const float* q, V* query) {
#pragma GCC unroll 4
  for (size_t e = 0; e < kWidth; ++e) query[e] = hn::Set(D(), q[e]);
  query[kWidth] = hn::Set(D(), Weight::kAhead ? q[kWidth] : q[kWidth] * q[kWidth]);
}
// q - k of a spread query and a vector of keys.
HWY_INLINE void differences(const V* query, const V* key, V* t) {
#pragma GCC unroll 4
  for (size_t e = 0; e < kWidth; ++e) t[e] = hn::Sub(query[e], key[e]);
}
HWY_INLINE V square_of(const V* t) {
  V sum = hn::Mul(t[0], t[0]);
#pragma GCC unroll 4
  for (size_t e = 1; e < kWidth; ++e) sum = hn::MulAdd(t[e], t[e], sum);
  return sum;
}
HWY_INLINE Distance distance(const V* query, const V* key) {
  V t[kWidth];
  differences(query, key, t);
  return {square_of(t), query[kWidth]};
}
// The keys of vector g.
HWY_INLINE void load_key(const MeanBlock& m, size_t g, V* key) {
#pragma GCC unroll 4
  for (size_t e = 0; e < kWidth; ++e) key[e] = hn::Load(D(), m.panel + g * stride(m) + e * N);
}
HWY_INLINE V base_of(const MeanBlock& m, size_t row) {
  return m.base ? hn::Set(D(), m.base[row]) : hn::Zero(D());
}

// Loops::rows<kRows>(m, row, begin, end) takes kRows queries from `row` on through vectors
// [begin, end) of keys; with one query it minds the padding of the last vector. All queries of a
// block, kQueries at a time where vectors of keys are whole:
template <class Loops>
void all_rows(const MeanBlock& m) {
  const FlushSubnormals flush;  // products with a far key's weight
  const size_t whole = m.keys / N, all = (m.keys + N - 1) / N;
  size_t row = 0;
  for (; row + kQueries <= m.rows; row += kQueries) {
    Loops::template rows<kQueries>(m, row, 0, whole);
    for (size_t r = row; r < row + kQueries && whole < all; ++r)
      Loops::template rows<1>(m, r, whole, all);
  }
  for (; row < m.rows; ++row) Loops::template rows<1>(m, row, 0, all);
}
// Row after row: for few of them.
template <class Loops>
void each_row(const MeanBlock& m) {
  for (size_t row = 0; row < m.rows; ++row)
    Loops::template rows<1>(m, row, 0, (m.keys + N - 1) / N);
}

// Of<Kernel>::loops() for every kernel, in the order of KernelName.
template <template <template <class> class> class Of>
constexpr auto loops_of_kernels() {
  using namespace kernel;
  return std::array{Of<Gaussian>::loops(), Of<Laplace>::loops(),    Of<Logistic>::loops(),
                    Of<Sigmoid>::loops(),  Of<Silverman>::loops(),  Of<Cauchy>::loops(),
                    Of<Box>::loops(),      Of<Triangular>::loops(), Of<Epanechnikov>::loops(),
                    Of<Quartic>::loops(),  Of<Triweight>::loops(),  Of<Tricube>::loops(),
                    Of<Cosine>::loops()};
}
// Positive everywhere: such a kernel has a logarithm.
template <template <class> class Kernel>
concept Positive = requires {
  requires Kernel<D>::kPositive;
};

}  // namespace kernel_mean
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
