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

#include "engine/scores/decay-inl.h"
#include "engine/scores/silverman-inl.h"
#include "engine/simd/math-inl.h"
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

template <class D>
struct Laplace {
  using V = hn::Vec<D>;
  static constexpr bool kPositive = true;
  static HWY_INLINE V value(D d, V z) { return decay<Decay{1, 0.5}>(d, root(d, z).u); }
  static HWY_INLINE V log_value(D d, V z) {
    return hn::Sub(number(d, -0.69314718055994530942), root(d, z).u);
  }
  static HWY_INLINE V slope(D d, V z) { return hn::Mul(value(d, z), log_slope(d, z)); }
  static HWY_INLINE V log_slope(D d, V z) { return hn::Neg(root(d, z).inverse); }
};

// tanh(rate u) / u with t = exp(-2 rate u), r = 1 / (1 + t): (1 - t) r / u, and near 0, where 1 - t
// cancels, a series in z = u^2.
template <class D>
HWY_INLINE hn::Vec<D> tanh_over(D d, double rate, hn::Vec<D> z, hn::Vec<D> one_minus_t,
                                hn::Vec<D> r) {
  using V = hn::Vec<D>;
  const double c = rate * rate;
  const auto x = root_away_from_zero(d, z);
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    V near =
        hn::MulAdd(z, number(d, rate * c * c * c * -17 / 315), number(d, rate * c * c * 2 / 15));
    near = hn::MulAdd(z, near, number(d, rate * c / -3));
    near = hn::MulAdd(z, near, number(d, rate));
    const V far = hn::Mul(hn::Mul(one_minus_t, r), x.inverse);
    return hn::IfThenElse(hn::Lt(z, number(d, 1 / (32 * c))), near, far);
  } else {
    const V ratio = hn::Mul(tanh(d, hn::Mul(number(d, rate), x.u)), x.inverse);
    return hn::IfThenElse(hn::Eq(x.u, hn::Zero(d)), number(d, rate), ratio);
  }
}

// With t = exp(-u): K = t / (1 + t)^2, (log K)' = -tanh(u / 2).
template <class D>
struct Logistic {
  using V = hn::Vec<D>;
  static constexpr bool kPositive = true;
  static HWY_INLINE V value(D d, V z) {
    const V t = decay<Decay{1, 1}>(d, hn::Sqrt(z)), r = reciprocal(d, hn::Add(number(d, 1), t));
    return hn::Mul(t, hn::Mul(r, r));
  }
  static HWY_INLINE V log_value(D d, V z) {
    const V u = hn::Sqrt(z), t = decay<Decay{1, 1}>(d, u);
    return hn::NegMulAdd(number(d, 2), log(d, hn::Add(number(d, 1), t)), hn::Neg(u));
  }
  static HWY_INLINE V slope(D d, V z) { return hn::Mul(value(d, z), log_slope(d, z)); }
  static HWY_INLINE V log_slope(D d, V z) {
    const V one = number(d, 1), t = decay<Decay{1, 1}>(d, hn::Sqrt(z));
    return hn::Neg(tanh_over(d, 0.5, z, hn::Sub(one, t), reciprocal(d, hn::Add(one, t))));
  }
};

// With t = exp(-u): K = (2 / pi) t / (1 + t^2), (log K)' = -tanh(u).
template <class D>
struct Sigmoid {
  using V = hn::Vec<D>;
  static constexpr bool kPositive = true;
  static HWY_INLINE V value(D d, V z) {
    const V t = decay<Decay{1, 1}>(d, hn::Sqrt(z));
    return hn::Mul(hn::Mul(number(d, 2 / kPi), t), reciprocal(d, hn::MulAdd(t, t, number(d, 1))));
  }
  static HWY_INLINE V log_value(D d, V z) {
    const V u = hn::Sqrt(z), t = decay<Decay{1, 1}>(d, u);
    return hn::Sub(hn::Sub(number(d, -0.45158270528945486473), u),
                   log(d, hn::MulAdd(t, t, number(d, 1))));
  }
  static HWY_INLINE V slope(D d, V z) { return hn::Mul(value(d, z), log_slope(d, z)); }
  static HWY_INLINE V log_slope(D d, V z) {
    const V one = number(d, 1), t = decay<Decay{1, 1}>(d, hn::Sqrt(z));
    return hn::Neg(tanh_over(d, 1.0, z, hn::NegMulAdd(t, t, one),
                             reciprocal(d, hn::MulAdd(t, t, one))));  // the value's reciprocal
  }
};

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
      // cos(pi u / 2) = sin(pi (1 - u) / 2), and 1 - u = (1 - z) / (1 + u): near u = 1, where the
      // cosine vanishes, 1 - z is exact, and the logarithm's slope divides by it.
      const V one = number(d, 1);
      const V y = hn::Mul(number(d, kPi / 2), hn::Div(hn::Sub(one, z), hn::Add(one, hn::Sqrt(z))));
      return hn::Mul(number(d, kPi / 4), hn::Max(hn::Zero(d), hn::Mul(y, sine_over(d, y))));
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
