// What kernels of distance decay by: powers of e, and roots of z = u^2.
#if defined(FOVEA_ENGINE_DECAY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_DECAY_INL_H_
#undef FOVEA_ENGINE_DECAY_INL_H_
#else
#define FOVEA_ENGINE_DECAY_INL_H_
#endif

#include "engine/simd/math-inl.h"
#include "engine/simd/table-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace kernel {

namespace hn = hwy::HWY_NAMESPACE;
inline constexpr double kPi = 3.14159265358979323846;

template <class D>
HWY_INLINE hn::Vec<D> number(D d, double x) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(x));
}
template <class V>
struct ValueAndSlope {
  V value, slope;
};
// z as slopes want it: far points' squares overflow, and infinity times a weight of 0 is no number.
template <class D>
HWY_INLINE hn::Vec<D> not_infinite(D d, hn::Vec<D> z) {
  return at_most(d, number(d, sizeof(hn::TFromD<D>) == 4 ? 1e37 : 1e307), z);
}
// u = root * scale as what is divided by u wants it.
template <class D>
inline constexpr double kLeast = sizeof(hn::TFromD<D>) == 4 ? 1e-18 : 1e-150;
template <class D>
HWY_INLINE hn::Vec<D> not_zero(D d, hn::Vec<D> root, hn::Vec<D> scale) {
  return hn::MulAdd(root, scale, number(d, kLeast<D>));
}
// 1 / u of that, without the divider, which is busy with roots: 0 at 0, where |u| has its corner.
template <class D>
HWY_INLINE hn::Vec<D> inverse_root(D d, hn::Vec<D> u) {
  return hn::IfThenElseZero(hn::Gt(u, number(d, kLeast<D>)), reciprocal(d, u));
}

// factor e^(-rate x), x >= 0; 0 from 2^-120 on, before it is subnormal. In float the factor costs
// nothing: it is in the coefficients.
struct Decay {
  double rate, factor;
};

template <Decay kDecay, class D>
HWY_INLINE hn::Vec<D> decay_by_polynomial(D d, hn::Vec<D> x, hn::Vec<D> power) {
  constexpr double kFactor = kDecay.factor;
  static constexpr float c[] = {static_cast<float>(kFactor),
                                static_cast<float>(kFactor * 0.69314700),
                                static_cast<float>(kFactor * 0.24022247),
                                static_cast<float>(kFactor * 0.055507112),
                                static_cast<float>(kFactor * 0.0096712941),
                                static_cast<float>(kFactor * 0.0013269406)};  // exp2_fraction's
  const auto round = hn::Set(d, math_detail::Constants<float>::kRoundToPower);
  const auto rounded = hn::MulAdd(x, power, round);
  const auto n = hn::Sub(rounded, round);
  const auto f = hn::MulSub(x, power, n);
  const auto result =
      hn::Mul(math_detail::polynomial(d, f, c), math_detail::power_of_two(d, rounded));
  return hn::IfThenZeroElse(hn::Lt(n, number(d, -120)), result);
}

// At x * scale.
template <Decay kDecay, class D>
HWY_INLINE hn::Vec<D> decay(D d, hn::Vec<D> x, hn::Vec<D> scale) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    const auto y = hn::Mul(hn::Mul(number(d, -kDecay.rate), scale), x);
    return hn::Mul(number(d, kDecay.factor), exp_bounded(d, y));
  } else {
    const auto power = hn::Mul(number(d, -kDecay.rate * 1.44269504088896340736), scale);
#if FOVEA_HAS_TABLES
    static constexpr Table kPowers = table_of([](size_t i) {
      return static_cast<float>(kDecay.factor * power_of_two(static_cast<double>(i) / 32));
    });
    return power_by_table(d, kPowers, x, power, -120);
#else
    return decay_by_polynomial<kDecay>(d, x, power);
#endif
  }
}
template <Decay kDecay, class D>
HWY_INLINE hn::Vec<D> decay(D d, hn::Vec<D> x) {
  return decay<kDecay>(d, x, number(d, 1));
}

}  // namespace kernel
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
