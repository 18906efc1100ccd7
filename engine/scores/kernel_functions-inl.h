// The thirteen kernels of Nadaraya-Watson regression as functions of z = u^2, each with its two faces and
// their slopes:
//
//   value(z) = K(u),       log_value(z) = log K(u),
//   slope(z) = K'(u) / u,  log_slope(z) = (log K)'(u) / u.
//
// A slope divided by u is what a gradient needs: dK/dq = slope (q - k) / h^2. Where |u| has a
// corner at 0 the slope is taken as 0 there; outside a compact support K is 0, its logarithm
// -infinity and both slopes 0.
#if defined(FOVEA_ENGINE_KERNEL_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_KERNEL_FUNCTIONS_INL_H_
#undef FOVEA_ENGINE_KERNEL_FUNCTIONS_INL_H_
#else
#define FOVEA_ENGINE_KERNEL_FUNCTIONS_INL_H_
#endif

#include "engine/scores/decay-inl.h"
#include "engine/scores/silverman-inl.h"
#include "engine/simd/math-inl.h"
#include "engine/simd/zero-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace kernel {

namespace hn = hwy::HWY_NAMESPACE;
template <class D>
struct Gaussian {
  using V = hn::Vec<D>;
  static constexpr bool kPositive = true;
  static constexpr Decay kDecay{0.5, 0.39894228040143267794};
  static HWY_INLINE V value(D d, V z) { return decay<kDecay>(d, z, number(d, 1)); }
  // The same at z = square * scale, and the slope there, for less.
  static HWY_INLINE V scaled_value(D d, V square, V scale) {
    return decay<kDecay>(d, square, scale);
  }
  static HWY_INLINE V slope_of_value(V value) { return hn::Neg(value); }
  static HWY_INLINE V log_value(D d, V z) {
    return hn::MulAdd(number(d, -0.5), z, number(d, -0.91893853320467274178));
  }
  static HWY_INLINE V slope(D d, V z) { return hn::Neg(value(d, z)); }
  static HWY_INLINE V log_slope(D d, V) { return number(d, -1); }
};

// Kernels of u itself: the formulae of Inner, its value at u = root * scale, value and slope
// together (for what they share) at not_zero(root, scale). A loop that knows its pairs ahead takes
// the root long before.
template <class D, template <class> class Inner>
struct OfRoot {
  using V = hn::Vec<D>;
  using AtRoot = Inner<D>;
  static HWY_INLINE V value(D d, V z) { return Inner<D>::value(d, hn::Sqrt(z), number(d, 1)); }
  static HWY_INLINE V log_value(D d, V z) { return Inner<D>::log_value(d, hn::Sqrt(z)); }
  static HWY_INLINE V slope(D d, V z) { return Inner<D>::both(d, away(d, z)).slope; }
  static HWY_INLINE V log_slope(D d, V z) { return Inner<D>::log_slope(d, away(d, z)); }

 private:
  static HWY_INLINE V away(D d, V z) { return not_zero(d, hn::Sqrt(z), number(d, 1)); }
};
template <class D, template <class> class Inner>
struct PositiveOfRoot : OfRoot<D, Inner> {
  static constexpr bool kPositive = true;
};

template <class D>
struct InnerLaplace {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V root, V scale) { return decay<Decay{1, 0.5}>(d, root, scale); }
  static HWY_INLINE V log_value(D d, V u) { return hn::Sub(number(d, -0.69314718055994530942), u); }
  static HWY_INLINE ValueAndSlope<V> both(D d, V u) {
    const V k = value(d, u, number(d, 1));
    return {k, hn::Neg(hn::Mul(k, inverse_root(d, u)))};
  }
  static HWY_INLINE V log_slope(D d, V u) { return hn::Neg(inverse_root(d, u)); }
};

// tanh(rate u) / u: `far`, and near 0, where that cancels, a series (in all 1e-6).
template <class D>
HWY_INLINE hn::Vec<D> tanh_over(D d, double rate, hn::Vec<D> u, hn::Vec<D> far) {
  using V = hn::Vec<D>;
  const double c = rate * rate;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const V z = hn::Mul(u, u);
    const V near = hn::MulAdd(z, number(d, rate * c / -3), number(d, rate));
    return hn::IfThenElse(hn::Lt(z, number(d, 1 / (640 * c))), near, far);
  } else {
    return hn::Div(tanh(d, hn::Mul(number(d, rate), u)), u);
  }
}

// 1 / (one + power) and (one - power) / (one + power) u, which is tanh(rate u) / u: one reciprocal
// for both.
template <class V>
struct Shared {
  V inverse, tanh_over;
};
template <class D>
HWY_INLINE Shared<hn::Vec<D>> share(D d, double rate, double one, hn::Vec<D> u, hn::Vec<D> power) {
  const auto inverse = reciprocal(d, hn::MulAdd(u, power, hn::Mul(u, number(d, one))));
  const auto far = hn::Mul(hn::Sub(number(d, one), power), inverse);
  return {hn::Mul(inverse, u), tanh_over(d, rate, u, far)};
}
// With t = exp(-u): K = t / (1 + t)^2, (log K)' = -tanh(u / 2) = -(1 - t) / (1 + t).
template <class D>
struct InnerLogistic {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V root, V scale) {
    const V t = power(d, root, scale), r = reciprocal(d, hn::Add(number(d, 1), t));
    return hn::Mul(t, hn::Mul(r, r));
  }
  static HWY_INLINE V log_value(D d, V u) {
    return hn::NegMulAdd(number(d, 2), log(d, hn::Add(number(d, 1), power(d, u, number(d, 1)))),
                         hn::Neg(u));
  }
  static HWY_INLINE ValueAndSlope<V> both(D d, V u) {
    const V t = power(d, u, number(d, 1));
    const Shared<V> s = share(d, 0.5, 1, u, t);
    const V k = hn::Mul(t, hn::Mul(s.inverse, s.inverse));
    return {k, hn::Neg(hn::Mul(k, s.tanh_over))};
  }
  static HWY_INLINE V log_slope(D d, V u) {
    return hn::Neg(share(d, 0.5, 1, u, power(d, u, number(d, 1))).tanh_over);
  }

 private:
  static HWY_INLINE V power(D d, V root, V scale) { return decay<Decay{1, 1}>(d, root, scale); }
};

// With t = (pi / 2) exp(-u):
//   K = t / (pi^2 / 4 + t^2),   (log K)' = -tanh(u) = -(pi^2 / 4 - t^2) / (pi^2 / 4 + t^2).
template <class D>
struct InnerSigmoid {
  using V = hn::Vec<D>;
  static constexpr double kOne = kPi * kPi / 4;
  static HWY_INLINE V value(D d, V root, V scale) {
    const V t = power(d, root, scale);
    return hn::Mul(t, reciprocal(d, hn::MulAdd(t, t, number(d, kOne))));
  }
  static HWY_INLINE V log_value(D d, V u) {
    const V t = decay<Decay{1, 1}>(d, u);
    return hn::Sub(hn::Sub(number(d, -0.45158270528945486473), u),
                   log(d, hn::MulAdd(t, t, number(d, 1))));
  }
  static HWY_INLINE ValueAndSlope<V> both(D d, V u) {
    const V t = power(d, u, number(d, 1));
    const Shared<V> s = share(d, 1, kOne, u, hn::Mul(t, t));
    const V k = hn::Mul(t, s.inverse);
    return {k, hn::Neg(hn::Mul(k, s.tanh_over))};
  }
  static HWY_INLINE V log_slope(D d, V u) {
    const V t = power(d, u, number(d, 1));
    return hn::Neg(share(d, 1, kOne, u, hn::Mul(t, t)).tanh_over);
  }

 private:
  static HWY_INLINE V power(D d, V root, V scale) {
    return decay<Decay{1, kPi / 2}>(d, root, scale);
  }
};

template <class D>
using Laplace = PositiveOfRoot<D, InnerLaplace>;
template <class D>
using Logistic = PositiveOfRoot<D, InnerLogistic>;
template <class D>
using Sigmoid = PositiveOfRoot<D, InnerSigmoid>;
template <class D>
using Silverman = OfRoot<D, InnerSilverman>;

template <class D>
struct Cauchy {
  using V = hn::Vec<D>;
  static constexpr bool kPositive = true;
  static HWY_INLINE V value(D d, V z) { return hn::Mul(number(d, 1 / kPi), inverse(d, z)); }
  static HWY_INLINE V log_value(D d, V z) {
    return hn::Sub(number(d, -1.14472988584940017414), log(d, hn::Add(number(d, 1), z)));
  }
  static HWY_INLINE V slope(D d, V z) {
    const V i = inverse(d, z);
    return hn::Neg(hn::Mul(hn::Mul(number(d, 2 / kPi), i), i));
  }
  static HWY_INLINE V log_slope(D d, V z) { return hn::Mul(number(d, -2), inverse(d, z)); }

 private:
  // 1 / (1 + z)
  static HWY_INLINE V inverse(D d, V z) {
    return reciprocal(d, hn::Add(number(d, 1), not_infinite(d, z)));
  }
};

// Compact kernels: the formulae of Inner on [0, 1], continued by 0. A distance that is NaN is not
// outside: its value is NaN.
template <class D, template <class> class Inner>
struct Compact {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { return outside_zero(d, z, Inner<D>::value(d, z)); }
  static HWY_INLINE V log_value(D d, V z) { return log(d, value(d, z)); }
  static HWY_INLINE V slope(D d, V z) { return outside_zero(d, z, Inner<D>::slope(d, z)); }
  static HWY_INLINE V log_slope(D d, V z) {
    const V v = value(d, z);
    return hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), hn::Div(slope(d, z), v));
  }

 private:
  // Value and slope of a pair share the comparison.
  static HWY_INLINE V outside_zero(D d, V z, V x) { return zero_above(d, z, number(d, 1), x); }
};

// clang-format off
template <class D> struct InnerBox {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { return hn::MulAdd(z, hn::Zero(d), number(d, 0.5)); }  // NaN at NaN
  static HWY_INLINE V slope(D d, V) { return hn::Zero(d); }
};
template <class D> struct InnerTriangular {
  using V = hn::Vec<D>;
  static HWY_INLINE V value(D d, V z) { return hn::Sub(number(d, 1), hn::Sqrt(z)); }
  static HWY_INLINE V slope(D d, V z) { return hn::Neg(inverse_root(d, hn::Sqrt(z))); }
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
      // cos(pi u / 2) = sin(pi (1 - u) / 2), and 1 - u = (1 - z) / (1 + u): near u = 1, where the
      // cosine vanishes, 1 - z is exact, and the logarithm's slope divides by it.
      const V one = number(d, 1);
      const V y = hn::Mul(number(d, kPi / 2), hn::Div(hn::Sub(one, z), hn::Add(one, hn::Sqrt(z))));
      return hn::Mul(number(d, kPi / 4), at_least(d, hn::Zero(d), hn::Mul(y, sine_over(d, y))));
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
template <class D>
struct Box : Compact<D, InnerBox> {
  using V = hn::Vec<D>;
  // The value at a distance that is a number: without the product that gives NaN at NaN.
  static HWY_INLINE V value_at_number(D d, V z) {
    return zero_above(d, z, number(d, 1), number(d, 0.5));
  }
};
// clang-format off
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
