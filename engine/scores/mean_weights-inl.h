// What the loops of kernel means share: the distance of a pair, and its weight and slope by value
// or by logarithm.
#if defined(FOVEA_ENGINE_MEAN_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_MEAN_WEIGHTS_INL_H_
#undef FOVEA_ENGINE_MEAN_WEIGHTS_INL_H_
#else
#define FOVEA_ENGINE_MEAN_WEIGHTS_INL_H_
#endif

#include <array>

#include "engine/kernel_mean.h"
#include "engine/scores/kernel_functions-inl.h"
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

// A pair's z = u^2, as |q - k|^2 and b^2: some kernels take the factor for nothing.
struct Distance {
  V square, scale;
  HWY_INLINE V z() const { return hn::Mul(square, scale); }
};

// K itself, and K'(u) / u.
template <template <class> class Kernel>
struct ByValue {
  static constexpr bool kScaled = requires(V x) {
    Kernel<D>::scaled_value(D(), x, x), Kernel<D>::slope_of_value(x);
  };
  static HWY_INLINE V weight(const Distance& x, V) {
    if constexpr (kScaled)
      return Kernel<D>::scaled_value(D(), x.square, x.scale);
    else
      return Kernel<D>::value(D(), x.z());
  }
  static HWY_INLINE V slope(const Distance& x, V weight) {
    if constexpr (kScaled)
      return Kernel<D>::slope_of_value(weight);
    else
      return Kernel<D>::slope(D(), x.z());
  }
};
// exp(log K - base), and that times (log K)'(u) / u.
template <template <class> class Kernel>
struct ByLog {
  static HWY_INLINE V weight(const Distance& x, V base) {
    return exp_bounded(D(), hn::Sub(Kernel<D>::log_value(D(), x.z()), base));
  }
  static HWY_INLINE V slope(const Distance& x, V weight) {
    return hn::Mul(weight, Kernel<D>::log_slope(D(), x.z()));
  }
};

inline size_t stride(const MeanBlock& m) { return (kWidth + m.values) * N; }

// Of a query and a vector of keys; q - k goes to t.
HWY_INLINE Distance distance(const float* q, const V* key, V* t) {
  const D d;
  V sum = hn::Zero(d);
#pragma GCC unroll 4
  for (size_t e = 0; e < kWidth; ++e) {
    t[e] = hn::Sub(hn::Set(d, q[e]), key[e]);
    sum = e == 0 ? hn::Mul(t[e], t[e]) : hn::MulAdd(t[e], t[e], sum);
  }
  return {sum, hn::Set(d, q[kWidth] * q[kWidth])};
}
HWY_INLINE V base_of(const MeanBlock& m, size_t row) {
  return m.base ? hn::Set(D(), m.base[row]) : hn::Zero(D());
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
