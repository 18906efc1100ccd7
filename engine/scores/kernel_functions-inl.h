// The thirteen kernels of systems.md's S1 as functions of z = u^2, each with its two faces and
// their slopes:
//   value(z) = K(u),  log_value(z) = log K(u),  slope(z) = K'(u) / u,  log_slope(z) = (log K)'(u) /
//   u.
// A slope divided by u is what a gradient needs: dK/dq = slope (q - k) / h^2. Where |u| has a
// corner at 0 the slope is taken as 0 there; outside a compact support K is 0, its logarithm
// -infinity and both slopes 0.
#if defined(FOVEA_ENGINE_KERNEL_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_KERNEL_FUNCTIONS_INL_H_
#undef FOVEA_ENGINE_KERNEL_FUNCTIONS_INL_H_
#else
#define FOVEA_ENGINE_KERNEL_FUNCTIONS_INL_H_
#endif

#include "engine/simd/math-inl.h"
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
// u = sqrt(z), which the divider finds beside the arithmetic, and 1 / u, which would keep it
// waiting: 0 at 0, where |u| has its corner.
template <class V>
struct Root {
  V u, inverse;
};
template <class D>
HWY_INLINE Root<hn::Vec<D>> root(D d, hn::Vec<D> z) {
  const auto u = hn::Sqrt(z);
  return {u, hn::IfThenElseZero(hn::Gt(z, hn::Zero(d)), reciprocal(d, u))};
}

// factor e^(-rate x), x >= 0; 0 from 2^-120 on, before it is subnormal. In float the factor costs
// nothing: it is in the coefficients.
struct Decay {
  double rate, factor;
};
template <Decay kDecay, class D>
HWY_INLINE hn::Vec<D> decay(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 4) {
    constexpr double kFactor = kDecay.factor, kPower = -kDecay.rate * 1.44269504088896340736,
                     kLastPower = -120;
    static constexpr float c[] = {static_cast<float>(kFactor),
                                  static_cast<float>(kFactor * 0.69314700),
                                  static_cast<float>(kFactor * 0.24022247),
                                  static_cast<float>(kFactor * 0.055507112),
                                  static_cast<float>(kFactor * 0.0096712941),
                                  static_cast<float>(kFactor * 0.0013269406)};  // exp2_fraction's
    const auto round = hn::Set(d, math_detail::Constants<float>::kRound);
    const auto rounded = hn::MulAdd(x, number(d, kPower), round);
    const auto f = hn::MulSub(x, number(d, kPower), hn::Sub(rounded, round));
    const auto result = math_detail::add_to_exponent(d, math_detail::polynomial(d, f, c), rounded);
    return hn::IfThenZeroElse(hn::Gt(x, number(d, kLastPower / kPower)), result);
  } else {
    return hn::Mul(number(d, kDecay.factor), exp_bounded(d, hn::Mul(number(d, -kDecay.rate), x)));
  }
}

// sin(x) / x and cos(x) for 0 <= x <= pi / 2 in double, by Taylor sums.
template <class D>
HWY_INLINE hn::Vec<D> sine_over(D d, hn::Vec<D> x) {
  const auto z = hn::Mul(x, x);
  auto sum = number(d, 1);
  for (int k = 12; k > 0; --k)
    sum = hn::NegMulAdd(hn::Mul(z, number(d, 1.0 / ((2 * k) * (2 * k + 1)))), sum, number(d, 1));
  return sum;
}
template <class D>
HWY_INLINE hn::Vec<D> cosine(D d, hn::Vec<D> x) {
  // Close to pi / 2, where cos goes through 0: sin(pi / 2 - x), pi / 2 in two parts.
  const auto y = hn::Add(hn::Sub(number(d, kPi / 2), x), number(d, 6.123233995736766e-17));
  return hn::Mul(y, sine_over(d, y));
}

template <class D>
struct Gaussian {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { return decay<Decay{0.5, 0.39894228040143267794}>(d, z); }
  static HWY_INLINE V log_value(D d, V z) {
    return hn::MulAdd(number(d, -0.5), z, number(d, -0.91893853320467274178));
  }
  static HWY_INLINE V slope(D d, V z) { return hn::Neg(value(d, z)); }
  static HWY_INLINE V log_slope(D d, V) { return number(d, -1); }
};

template <class D>
struct Laplace {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { return decay<Decay{1, 0.5}>(d, root(d, z).u); }
  static HWY_INLINE V log_value(D d, V z) {
    return hn::Sub(number(d, -0.69314718055994530942), root(d, z).u);
  }
  static HWY_INLINE V slope(D d, V z) { return hn::Mul(value(d, z), log_slope(d, z)); }
  static HWY_INLINE V log_slope(D d, V z) { return hn::Neg(root(d, z).inverse); }
};

// (1 - t) / (1 + t) / u = tanh(u / 2) / u for t = exp(-u), r = 1 / (1 + t); near 0, where 1 - t
// cancels, its series in u^2.
template <class D>
HWY_INLINE hn::Vec<D> half_tanh_over(D d, const Root<hn::Vec<D>>& x, hn::Vec<D> t, hn::Vec<D> r) {
  using V = hn::Vec<D>;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const V z = hn::Mul(x.u, x.u);
    static constexpr float c[] = {1.0f / 2, -1.0f / 24, 1.0f / 240, -17.0f / 40320, 31.0f / 725760};
    const V far = hn::Mul(hn::Mul(hn::Sub(number(d, 1), t), r), x.inverse);
    return hn::IfThenElse(hn::Lt(x.u, number(d, 0.5)), math_detail::polynomial(d, z, c), far);
  } else {
    const V ratio = hn::Mul(tanh(d, hn::Mul(number(d, 0.5), x.u)), x.inverse);
    return hn::IfThenElse(hn::Eq(x.u, hn::Zero(d)), number(d, 0.5), ratio);
  }
}

// With t = exp(-u): K = t / (1 + t)^2, (log K)' = -tanh(u / 2).
template <class D>
struct Logistic {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) {
    const V t = decay<Decay{1, 1}>(d, root(d, z).u), r = reciprocal(d, hn::Add(number(d, 1), t));
    return hn::Mul(t, hn::Mul(r, r));
  }
  static HWY_INLINE V log_value(D d, V z) {
    const V u = root(d, z).u, t = decay<Decay{1, 1}>(d, u);
    return hn::NegMulAdd(number(d, 2), log(d, hn::Add(number(d, 1), t)), hn::Neg(u));
  }
  static HWY_INLINE V slope(D d, V z) { return hn::Mul(value(d, z), log_slope(d, z)); }
  static HWY_INLINE V log_slope(D d, V z) {
    const Root<V> x = root(d, z);
    const V t = decay<Decay{1, 1}>(d, x.u);
    return hn::Neg(half_tanh_over(d, x, t, reciprocal(d, hn::Add(number(d, 1), t))));
  }
};

// With t = exp(-u): K = (2 / pi) t / (1 + t^2), (log K)' = -tanh(u).
template <class D>
struct Sigmoid {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) {
    const V t = decay<Decay{1, 1}>(d, root(d, z).u);
    return hn::Mul(hn::Mul(number(d, 2 / kPi), t), reciprocal(d, hn::MulAdd(t, t, number(d, 1))));
  }
  static HWY_INLINE V log_value(D d, V z) {
    const V u = root(d, z).u, t = decay<Decay{1, 1}>(d, u);
    return hn::Sub(hn::Sub(number(d, -0.45158270528945486473), u),
                   log(d, hn::MulAdd(t, t, number(d, 1))));
  }
  static HWY_INLINE V slope(D d, V z) { return hn::Mul(value(d, z), log_slope(d, z)); }
  static HWY_INLINE V log_slope(D d, V z) {
    const Root<V> x = root(d, z);
    const V t = decay<Decay{1, 1}>(d, x.u), square = hn::Mul(t, t);
    // tanh(u) / u = 2 (tanh(v / 2) / v) with v = 2 u
    const Root<V> twice = {hn::Add(x.u, x.u), hn::Mul(number(d, 0.5), x.inverse)};
    const V half = half_tanh_over(d, twice, square, reciprocal(d, hn::Add(number(d, 1), square)));
    return hn::Mul(number(d, -2), half);
  }
};

// sin(x), any 0 <= x <= 1000: x = turns pi + y, |y| <= pi / 2.
template <class D>
HWY_INLINE hn::Vec<D> sine(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const hn::RebindToUnsigned<D> du;
  const auto round = hn::Set(d, math_detail::Constants<T>::kRound);
  const auto rounded = hn::MulAdd(x, number(d, 1 / kPi), round);
  const auto turns = hn::Sub(rounded, round);
  const double high = sizeof(T) == 4 ? 3.140625 : 3.1415926218032836914;
  const auto y =
      hn::NegMulAdd(turns, number(d, kPi - high), hn::NegMulAdd(turns, number(d, high), x));
  const auto odd = hn::BitCast(
      d, hn::ShiftLeft<sizeof(T) * 8 - 1>(hn::BitCast(du, rounded)));  // the sign of (-1)^turns
  hn::Vec<D> over;
  if constexpr (sizeof(T) == 4) {
    static constexpr float c[] = {1.0f, -0.166666567f, 0.0083330255f, -0.000198074194f,
                                  2.60190313e-06f};  // minimax, 2e-8
    over = math_detail::polynomial(d, hn::Mul(y, y), c);
  } else {
    over = sine_over(d, y);
  }
  return hn::Xor(odd, hn::Mul(y, over));
}

// With v = u / sqrt(2): K = exp(-v) sin(v + pi / 4) / 2, K' / u = -exp(-v) sin(v) / 2 u. It goes
// negative: no logarithm.
template <class D>
struct Silverman {
  using V = hn::Vec<D>;
  static constexpr double kRootHalf = 0.70710678118654752440;
  static HWY_INLINE V value(D d, V z) {
    const V u = phase(d, z);
    return hn::Mul(decay<Decay{kRootHalf, 0.5}>(d, u),
                   sine(d, hn::MulAdd(u, number(d, kRootHalf), number(d, kPi / 4))));
  }
  static HWY_INLINE V slope(D d, V z) {
    const Root<V> x = root(d, z);
    const V u = phase(d, z);
    const V ratio = hn::Mul(sine(d, hn::Mul(u, number(d, kRootHalf))), x.inverse);
    const V at_zero = hn::IfThenElse(hn::Eq(z, hn::Zero(d)), number(d, kRootHalf), ratio);
    return hn::Neg(hn::Mul(decay<Decay{kRootHalf, 0.5}>(d, u), at_zero));
  }
  static HWY_INLINE V log_value(D d, V) { return hn::NaN(d); }
  static HWY_INLINE V log_slope(D d, V) { return hn::NaN(d); }

 private:
  // Past 1000 the decay is 0 whatever the phase.
  static HWY_INLINE V phase(D d, V z) { return hn::Min(number(d, 1050), root(d, z).u); }
};

template <class D>
struct Cauchy {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { return hn::Mul(number(d, 1 / kPi), inverse(d, z)); }
  static HWY_INLINE V log_value(D d, V z) {
    return hn::Sub(number(d, -1.14472988584940017414), log(d, hn::Add(number(d, 1), z)));
  }
  static HWY_INLINE V slope(D d, V z) {
    const V i = inverse(d, z);
    return hn::Mul(hn::Mul(number(d, -2 / kPi), i), i);
  }
  static HWY_INLINE V log_slope(D d, V z) { return hn::Mul(number(d, -2), inverse(d, z)); }

 private:
  // 1 / (1 + z)
  static HWY_INLINE V inverse(D d, V z) {
    return reciprocal(d, hn::Add(number(d, 1), hn::Min(number(d, 1e37), z)));
  }
};

// Compact kernels: the formulae of Inner on [0, 1], continued by 0.
template <class D, template <class> class Inner>
struct Compact {
  using V = hn::Vec<D>;
  static HWY_INLINE auto inside(D d, V z) { return hn::Le(z, number(d, 1)); }
  static HWY_INLINE V value(D d, V z) {
    return hn::IfThenElseZero(inside(d, z), Inner<D>::value(d, z));
  }
  static HWY_INLINE V log_value(D d, V z) { return log(d, value(d, z)); }
  static HWY_INLINE V slope(D d, V z) {
    return hn::IfThenElseZero(inside(d, z), Inner<D>::slope(d, z));
  }
  static HWY_INLINE V log_slope(D d, V z) {
    const V v = value(d, z);
    return hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), hn::Div(slope(d, z), v));
  }
};

// clang-format off
template <class D> struct InnerBox {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V) { return number(d, 0.5); }
  static HWY_INLINE V slope(D d, V) { return hn::Zero(d); }
};
template <class D> struct InnerTriangular {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { return hn::Sub(number(d, 1), root(d, z).u); }
  static HWY_INLINE V slope(D d, V z) { return hn::Neg(root(d, z).inverse); }
};
template <class D> struct InnerEpanechnikov {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { return hn::NegMulAdd(number(d, 0.75), z, number(d, 0.75)); }
  static HWY_INLINE V slope(D d, V) { return number(d, -1.5); }
};
template <class D> struct InnerQuartic {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { const V w = hn::Sub(number(d, 1), z); return hn::Mul(number(d, 15.0 / 16), hn::Mul(w, w)); }
  static HWY_INLINE V slope(D d, V z) { return hn::Mul(number(d, -15.0 / 4), hn::Sub(number(d, 1), z)); }
};
template <class D> struct InnerTriweight {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { const V w = hn::Sub(number(d, 1), z); return hn::Mul(hn::Mul(number(d, 35.0 / 32), w), hn::Mul(w, w)); }
  static HWY_INLINE V slope(D d, V z) { const V w = hn::Sub(number(d, 1), z); return hn::Mul(number(d, -105.0 / 16), hn::Mul(w, w)); }
};
template <class D> struct InnerTricube {
  using V = hn::Vec<D>;
  static HWY_INLINE V one_minus_cube(D d, V z, V u) { return hn::NegMulAdd(z, u, number(d, 1)); }
  static HWY_INLINE V value(D d, V z) { const V w = one_minus_cube(d, z, root(d, z).u); return hn::Mul(hn::Mul(number(d, 70.0 / 81), w), hn::Mul(w, w)); }
  static HWY_INLINE V slope(D d, V z) { const V u = root(d, z).u, w = one_minus_cube(d, z, u); return hn::Mul(hn::Mul(number(d, -70.0 / 9), u), hn::Mul(w, w)); }
};
// clang-format on
// Both are even in u, so in float they are polynomials of z (minimax, 2e-8), cos(pi u / 2) without
// its factor 1 - z.
template <class D>
struct InnerCosine {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) {
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      static constexpr float c[] = {1.0f, -0.233700618f, 0.0199690908f, -0.000894255354f,
                                    2.39424098e-05f};
      return hn::Mul(hn::Mul(number(d, kPi / 4), hn::Sub(number(d, 1), z)),
                     math_detail::polynomial(d, z, c));
    } else {
      return hn::Mul(number(d, kPi / 4), hn::Max(hn::Zero(d), cosine(d, angle(d, z))));
    }
  }
  static HWY_INLINE V slope(D d, V z) {
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      static constexpr float c[] = {1.0f, -0.411233276f, 0.050732024f, -0.00297541218f,
                                    9.64384308e-05f};
      return hn::Mul(number(d, -kPi * kPi * kPi / 16), math_detail::polynomial(d, z, c));
    } else {
      return hn::Mul(number(d, -kPi * kPi * kPi / 16), sine_over(d, angle(d, z)));
    }
  }

 private:
  static HWY_INLINE V angle(D d, V z) { return hn::Mul(number(d, kPi / 2), hn::Sqrt(z)); }
};
// clang-format off
template <class D> using Box = Compact<D, InnerBox>;
template <class D> using Triangular = Compact<D, InnerTriangular>;
template <class D> using Epanechnikov = Compact<D, InnerEpanechnikov>;
template <class D> using Quartic = Compact<D, InnerQuartic>;
template <class D> using Triweight = Compact<D, InnerTriweight>;
template <class D> using Tricube = Compact<D, InnerTricube>;
template <class D> using Cosine = Compact<D, InnerCosine>;
// clang-format on

}  // namespace kernel
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
