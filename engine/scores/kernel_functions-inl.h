// The thirteen kernels of systems.md's S1 as functions of z = u^2, each with its two faces and their slopes:
//   value(z) = K(u),  log_value(z) = log K(u),  slope(z) = K'(u) / u,  log_slope(z) = (log K)'(u) / u.
// A slope divided by u is what a gradient needs: dK/dq = slope (q - k) / h^2. Where |u| has a corner at 0 the slope is taken as 0
// there; outside a compact support K is 0, its logarithm -infinity and both slopes 0.
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
// 1 / x where x > 0, else 0.
template <class D>
HWY_INLINE hn::Vec<D> inverse_or_zero(D d, hn::Vec<D> x) {
  return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Div(number(d, 1), x));
}

// sin(x) / x and cos(x) for 0 <= x <= pi / 2, by Taylor sums to the type's precision.
template <class D>
HWY_INLINE hn::Vec<D> sine_over(D d, hn::Vec<D> x) {
  const auto z = hn::Mul(x, x);
  constexpr int kTerms = sizeof(hn::TFromD<D>) == 4 ? 6 : 12;
  auto sum = number(d, 1);
  for (int k = kTerms; k > 0; --k) sum = hn::NegMulAdd(hn::Mul(z, number(d, 1.0 / ((2 * k) * (2 * k + 1)))), sum, number(d, 1));
  return sum;
}
template <class D>
HWY_INLINE hn::Vec<D> cosine(D d, hn::Vec<D> x) {
  // Close to pi / 2, where cos goes through 0: sin(pi / 2 - x), pi / 2 in two parts.
  const double high = static_cast<hn::TFromD<D>>(kPi / 2);
  const double low = sizeof(hn::TFromD<D>) == 4 ? kPi / 2 - high : 6.123233995736766e-17;
  const auto y = hn::Add(hn::Sub(number(d, high), x), number(d, low));
  return hn::Mul(y, sine_over(d, y));
}

template <class D>
struct Gaussian {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) {
    return hn::Mul(number(d, 0.39894228040143267794), exp_bounded(d, hn::Mul(number(d, -0.5), z)));
  }
  static HWY_INLINE V log_value(D d, V z) { return hn::MulAdd(number(d, -0.5), z, number(d, -0.91893853320467274178)); }
  static HWY_INLINE V slope(D d, V z) { return hn::Neg(value(d, z)); }
  static HWY_INLINE V log_slope(D d, V) { return number(d, -1); }
};

template <class D>
struct Laplace {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { return hn::Mul(number(d, 0.5), exp_bounded(d, hn::Neg(hn::Sqrt(z)))); }
  static HWY_INLINE V log_value(D d, V z) { return hn::Sub(number(d, -0.69314718055994530942), hn::Sqrt(z)); }
  static HWY_INLINE V slope(D d, V z) { return hn::Mul(value(d, z), log_slope(d, z)); }
  static HWY_INLINE V log_slope(D d, V z) { return hn::Neg(inverse_or_zero(d, hn::Sqrt(z))); }
};

// With t = exp(-u): K = t / (1 + t)^2, (log K)' = -tanh(u / 2).
template <class D>
struct Logistic {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) {
    const V t = exp_bounded(d, hn::Neg(hn::Sqrt(z)));
    const V one_t = hn::Add(number(d, 1), t);
    return hn::Div(t, hn::Mul(one_t, one_t));
  }
  static HWY_INLINE V log_value(D d, V z) {
    const V u = hn::Sqrt(z);
    const V t = exp_bounded(d, hn::Neg(u));
    return hn::NegMulAdd(number(d, 2), log(d, hn::Add(number(d, 1), t)), hn::Neg(u));
  }
  static HWY_INLINE V slope(D d, V z) { return hn::Mul(value(d, z), log_slope(d, z)); }
  static HWY_INLINE V log_slope(D d, V z) {
    const V u = hn::Sqrt(z);
    const V ratio = hn::Mul(tanh(d, hn::Mul(number(d, 0.5), u)), inverse_or_zero(d, u));
    return hn::Neg(hn::IfThenElse(hn::Eq(u, hn::Zero(d)), number(d, 0.5), ratio));
  }
};

// With t = exp(-u): K = (2 / pi) t / (1 + t^2), (log K)' = -tanh(u).
template <class D>
struct Sigmoid {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) {
    const V t = exp_bounded(d, hn::Neg(hn::Sqrt(z)));
    return hn::Div(hn::Mul(number(d, 2 / kPi), t), hn::MulAdd(t, t, number(d, 1)));
  }
  static HWY_INLINE V log_value(D d, V z) {
    const V u = hn::Sqrt(z);
    const V t = exp_bounded(d, hn::Neg(u));
    return hn::Sub(hn::Sub(number(d, -0.45158270528945486473), u), log(d, hn::MulAdd(t, t, number(d, 1))));
  }
  static HWY_INLINE V slope(D d, V z) { return hn::Mul(value(d, z), log_slope(d, z)); }
  static HWY_INLINE V log_slope(D d, V z) {
    const V u = hn::Sqrt(z);
    const V ratio = hn::Mul(tanh(d, u), inverse_or_zero(d, u));
    return hn::Neg(hn::IfThenElse(hn::Eq(u, hn::Zero(d)), number(d, 1), ratio));
  }
};

// With v = u / sqrt(2): K = exp(-v) sin(v + pi / 4) / 2, K' = -exp(-v) sin(v) / 2. It goes negative: no logarithm.
template <class D>
struct Silverman {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) {
    V decay, sine, cosine_v;
    parts(d, z, &decay, &sine, &cosine_v);
    return hn::Mul(hn::Mul(number(d, 0.5 * 0.70710678118654752440), decay), hn::Add(sine, cosine_v));
  }
  static HWY_INLINE V slope(D d, V z) {
    V decay, sine, cosine_v;
    const V v = parts(d, z, &decay, &sine, &cosine_v);
    const V ratio = hn::IfThenElse(hn::Eq(v, hn::Zero(d)), number(d, 1), hn::Mul(sine, inverse_or_zero(d, v)));
    return hn::Mul(hn::Mul(number(d, -0.5 * 0.70710678118654752440), decay), ratio);
  }
  static HWY_INLINE V log_value(D d, V) { return hn::NaN(d); }
  static HWY_INLINE V log_slope(D d, V) { return hn::NaN(d); }

 private:
  // exp(-v), sin(v) and cos(v), v taken modulo pi; past 750 the decay is 0 whatever the phase.
  static HWY_INLINE V parts(D d, V z, V* decay, V* sine, V* cosine_v) {
    const V v = hn::Min(hn::Mul(number(d, 0.70710678118654752440), hn::Sqrt(z)), number(d, 750));
    *decay = exp_bounded(d, hn::Neg(v));
    const V turns = hn::Floor(hn::Mul(v, number(d, 1 / kPi)));
    const double high = sizeof(hn::TFromD<D>) == 4 ? 3.140625 : 3.1415926218032836914;
    const V x = hn::NegMulAdd(turns, number(d, kPi - high), hn::NegMulAdd(turns, number(d, high), v));  // in [0, pi)
    const V half = number(d, kPi / 2);
    const auto past = hn::Gt(x, half);
    const V y = hn::Max(hn::Zero(d), hn::IfThenElse(past, hn::Sub(number(d, kPi), x), x));  // in [0, pi / 2]
    // (-1)^turns: turns - 2 floor(turns / 2) is 0 or 1.
    const V odd = hn::NegMulAdd(number(d, 2), hn::Floor(hn::Mul(turns, number(d, 0.5))), turns);
    const V sign = hn::NegMulAdd(number(d, 2), odd, number(d, 1));
    *sine = hn::Mul(sign, hn::Mul(y, sine_over(d, y)));
    const V c = hn::Mul(sign, cosine(d, y));
    *cosine_v = hn::IfThenElse(past, hn::Neg(c), c);
    return v;
  }
};

template <class D>
struct Cauchy {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { return hn::Div(number(d, 1 / kPi), hn::Add(number(d, 1), z)); }
  static HWY_INLINE V log_value(D d, V z) {
    return hn::Sub(number(d, -1.14472988584940017414), log(d, hn::Add(number(d, 1), z)));
  }
  static HWY_INLINE V slope(D d, V z) {
    const V one_z = hn::Add(number(d, 1), z);
    return hn::Div(number(d, -2 / kPi), hn::Mul(one_z, one_z));
  }
  static HWY_INLINE V log_slope(D d, V z) { return hn::Div(number(d, -2), hn::Add(number(d, 1), z)); }
};

// Compact kernels: the formulae of Inner on [0, 1], continued by 0.
template <class D, template <class> class Inner>
struct Compact {
  using V = hn::Vec<D>;
  static HWY_INLINE auto inside(D d, V z) { return hn::Le(z, number(d, 1)); }
  static HWY_INLINE V value(D d, V z) { return hn::IfThenElseZero(inside(d, z), Inner<D>::value(d, z)); }
  static HWY_INLINE V log_value(D d, V z) { return log(d, value(d, z)); }
  static HWY_INLINE V slope(D d, V z) { return hn::IfThenElseZero(inside(d, z), Inner<D>::slope(d, z)); }
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
  static HWY_INLINE V value(D d, V z) { return hn::Sub(number(d, 1), hn::Sqrt(z)); }
  static HWY_INLINE V slope(D d, V z) { return hn::Neg(inverse_or_zero(d, hn::Sqrt(z))); }
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
  static HWY_INLINE V value(D d, V z) { const V w = one_minus_cube(d, z, hn::Sqrt(z)); return hn::Mul(hn::Mul(number(d, 70.0 / 81), w), hn::Mul(w, w)); }
  static HWY_INLINE V slope(D d, V z) { const V u = hn::Sqrt(z), w = one_minus_cube(d, z, u); return hn::Mul(hn::Mul(number(d, -70.0 / 9), u), hn::Mul(w, w)); }
};
template <class D> struct InnerCosine {
  using V = hn::Vec<D>;
  static HWY_INLINE V angle(D d, V z) { return hn::Mul(number(d, kPi / 2), hn::Sqrt(z)); }
  static HWY_INLINE V value(D d, V z) { return hn::Mul(number(d, kPi / 4), hn::Max(hn::Zero(d), cosine(d, angle(d, z)))); }
  static HWY_INLINE V slope(D d, V z) { return hn::Mul(number(d, -kPi * kPi * kPi / 16), sine_over(d, angle(d, z))); }
};
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
