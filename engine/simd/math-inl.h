// exp, exp2, log, tanh, sigmoid and reciprocal on whole vectors of float or double. All keep a NaN,
// whatever its bits: a score that is no number must not come out as one.
//
// exp splits x = n ln 2 + f, |f| <= ln(2) / 2, and multiplies a polynomial in f by 2^n. For float the
// polynomials are minimax (degree 5: relative error 9e-8). The result is within a few ulps, for half
// the price of a correctly rounded one. For double they are Taylor sums, so long that only rounding is
// left. tests/engine/simd/math_test.cc states and checks the ulps.
#include <concepts>
#include <cstdint>

#if defined(FOVEA_ENGINE_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_SIMD_MATH_INL_H_
#undef FOVEA_ENGINE_SIMD_MATH_INL_H_
#else
#define FOVEA_ENGINE_SIMD_MATH_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace math_detail {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Constants;

template <>
struct Constants<float> {
  static constexpr int kMantissaBits = 23;
  static constexpr float kLog2E = 1.44269504088896340736f;
  // ln 2 in two parts, the first so short that n times it is exact, with or without FMA.
  static constexpr float kLn2High = 0.693359375f;
  static constexpr float kLn2Low = -2.12194440054690583e-4f;
  // 1.5 * 2^23: adding it rounds to an integer n, kept in the low bits. With 127 more, those bits
  // are the exponent of 2^n.
  static constexpr float kRound = 12582912.0f, kRoundToPower = 12582912.0f + 127.0f;
  static constexpr float kLowestExponent = -127.0f;
  static constexpr float kLowestExp = -87.3365447505531f;  // e^x is subnormal below
  static constexpr float kHighestExp = 88.72284f;          // and infinite above
  static constexpr float kSmallestNormal = 1.17549435e-38f;
  static constexpr float kTanhIsOne = 9.1f;  // tanh rounds to 1 from here on
};

template <>
struct Constants<double> {
  static constexpr int kMantissaBits = 52;
  static constexpr double kLog2E = 1.44269504088896340736;
  static constexpr double kLn2High = 6.93147180369123816490e-01;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double kRoundToPower = 6755399441055744.0 + 1023.0;
  static constexpr double kLowestExponent = -1023.0;
  static constexpr double kLowestExp = -708.3964185322641, kHighestExp = 709.782712893384;
  static constexpr double kSmallestNormal = 2.2250738585072014e-308;
  static constexpr double kTanhIsOne = 19.1;
};

template <class D>
using T = hn::TFromD<D>;
template <class D>
using V = hn::Vec<D>;
template <class D>
concept Float = std::same_as < T<D>,
float > ;
template <class D>
concept Double = std::same_as < T<D>,
double > ;

// ((c[n-1] x + ...) x + c[1]) x + c[0]
template <class D, size_t kTerms>
HWY_INLINE V<D> polynomial(D d, V<D> x, const T<D> (&c)[kTerms]) {
  V<D> sum = hn::Set(d, c[kTerms - 1]);
  for (size_t i = kTerms - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// (e^f - 1) / f for |f| <= ln(2) / 2, to the last bits of f -> 0.
template <class D>
requires math_detail::Float<D> HWY_INLINE V<D> expm1_over(D d, V<D> f) {
  static constexpr float c[] = {1.0f,         0.49999997f,   0.16666546f,
                                0.041667435f, 0.0083662588f, 0.0013870646f};
  return polynomial(d, f, c);
}
template <class D>
requires math_detail::Double<D> HWY_INLINE V<D> expm1_over(D d, V<D> f) {
  static constexpr double c[] = {1.0,
                                 1.0 / 2,
                                 1.0 / 6,
                                 1.0 / 24,
                                 1.0 / 120,
                                 1.0 / 720,
                                 1.0 / 5040,
                                 1.0 / 40320,
                                 1.0 / 362880,
                                 1.0 / 3628800,
                                 1.0 / 39916800,
                                 1.0 / 479001600,
                                 1.0 / 6227020800.0};
  return polynomial(d, f, c);
}

// e^f for |f| <= ln(2) / 2; exactly 1 at 0.
template <class D>
requires math_detail::Float<D> HWY_INLINE V<D> exp_fraction(D d, V<D> f) {
  static constexpr float c[] = {1.0f,        0.99999970f,  0.49999148f,
                                0.16667649f, 0.041898157f, 0.0082896203f};
  return polynomial(d, f, c);
}
template <class D>
requires math_detail::Double<D> HWY_INLINE V<D> exp_fraction(D d, V<D> f) {
  return hn::MulAdd(f, expm1_over(d, f), hn::Set(d, 1.0));
}

// 2^f for |f| <= 1/2; exactly 1 at 0.
template <class D>
requires math_detail::Float<D> HWY_INLINE V<D> exp2_fraction(D d, V<D> f) {
  static constexpr float c[] = {1.0f,         0.69314700f,   0.24022247f,
                                0.055507112f, 0.0096712941f, 0.0013269406f};
  return polynomial(d, f, c);
}
template <class D>
requires math_detail::Double<D> HWY_INLINE V<D> exp2_fraction(D d, V<D> f) {
  return exp_fraction(d, hn::Mul(f, hn::Set(d, 0.693147180559945309417)));
}

// 2^n, -127 <= n <= 127 (-1023, 1023), of n + kRoundToPower; exactly 0 at the lowest. Nothing of
// use for NaN: what it is multiplied by must be NaN then.
template <class D>
HWY_INLINE V<D> power_of_two(D d, V<D> rounded) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<Constants<T<D>>::kMantissaBits>(hn::BitCast(di, rounded)));
}

// x 2^n of n + kRound, also at n = 128 (1024), which has no power of its own. Loses a NaN whose
// low bits are set.
template <class D>
HWY_INLINE V<D> add_to_exponent(D d, V<D> x, V<D> rounded) {
  const hn::RebindToSigned<D> di;
  const auto n = hn::ShiftLeft<Constants<T<D>>::kMantissaBits>(hn::BitCast(di, rounded));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, x), n));
}

// x = n ln 2 + f: returns f, and n + rounding in *rounded, kRound or kRoundToPower.
template <class D>
HWY_INLINE V<D> reduce_exp(D d, V<D> x, T<D> rounding, V<D>* rounded) {
  using C = Constants<T<D>>;
  const auto round = hn::Set(d, rounding);
  *rounded = hn::MulAdd(x, hn::Set(d, C::kLog2E), round);
  const auto n = hn::Sub(*rounded, round);
  const auto f = hn::NegMulAdd(n, hn::Set(d, C::kLn2High), x);
  return hn::NegMulAdd(n, hn::Set(d, C::kLn2Low), f);
}

// log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)].
template <class D>
requires math_detail::Float<D> HWY_INLINE V<D> log1p_fraction(D d, V<D> f) {
  static constexpr float c[] = {0.33333331f, -0.25000823f, 0.20001227f, -0.16623352f,
                                0.14201748f, -0.13160220f, 0.12761673f, -0.076345183f};
  const auto square = hn::Mul(f, f);
  const auto high = hn::NegMulAdd(hn::Set(d, 0.5f), square, f);
  return hn::MulAdd(hn::Mul(square, f), polynomial(d, f, c), high);
}
template <class D>
requires math_detail::Double<D> HWY_INLINE V<D> log1p_fraction(D d, V<D> f) {
  // 2 atanh(s) = 2 s (1 + s^2 / 3 + s^4 / 5 + ...), s = f / (2 + f)
  static constexpr double c[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
  const auto s = hn::Div(f, hn::Add(f, hn::Set(d, 2.0)));
  const auto z = hn::Mul(s, s);
  const auto twice = hn::Add(s, s);
  return hn::MulAdd(hn::Mul(twice, z), polynomial(d, z, c), twice);
}

}  // namespace math_detail

// max(bound, x) and min(bound, x), x where x is NaN. On x86 the operand that stands second wins
// then; Arm's Max and Min give the other one.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> at_least(D, hwy::HWY_NAMESPACE::Vec<D> bound,
                                               hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_ARCH_X86
  return hn::Max(bound, x);
#else
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
#endif
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> at_most(D, hwy::HWY_NAMESPACE::Vec<D> bound,
                                              hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_ARCH_X86
  return hn::Min(bound, x);
#else
  return hn::IfThenElse(hn::Gt(x, bound), bound, x);
#endif
}

// e^x for x up to 88 (709): the exp of a softmax. Exactly 0 where the result would be subnormal,
// from -87.3 (-708.4) down to -infinity; exactly 1 at 0.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> exp_bounded(D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using C = math_detail::Constants<hn::TFromD<D>>;
  hn::Vec<D> rounded;
  const auto f = math_detail::reduce_exp(d, x, C::kRoundToPower, &rounded);
  const auto result =
      hn::Mul(math_detail::exp_fraction(d, f), math_detail::power_of_two(d, rounded));
  return hn::IfThenZeroElse(hn::Le(x, hn::Set(d, C::kLowestExp)), result);
}

// e^x for every x; infinity past the overflow.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> exp(D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using C = math_detail::Constants<hn::TFromD<D>>;
  hn::Vec<D> rounded;
  const auto f = math_detail::reduce_exp(d, x, C::kRound, &rounded);
  const auto power = math_detail::add_to_exponent(d, math_detail::exp_fraction(d, f), rounded);
  const auto result = hn::IfThenZeroElse(hn::Le(x, hn::Set(d, C::kLowestExp)), power);
  // Not below the overflow: past it, or NaN, and the product is infinity or NaN.
  return hn::IfThenElse(hn::Le(x, hn::Set(d, C::kHighestExp)), result, hn::Mul(x, hn::Inf(d)));
}

// 2^x for x up to 127 (1023); exactly 0 from -127 (-1023) down.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> exp2_bounded(D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using C = math_detail::Constants<hn::TFromD<D>>;
  x = at_least(d, hn::Set(d, C::kLowestExponent), x);
  const auto round = hn::Set(d, C::kRoundToPower);
  const auto rounded = hn::Add(x, round);
  const auto f = hn::Sub(x, hn::Sub(rounded, round));
  return hn::Mul(math_detail::exp2_fraction(d, f), math_detail::power_of_two(d, rounded));
}

// Natural logarithm: -infinity at 0, NaN below, infinity at infinity; subnormals included.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> log(D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using T = hn::TFromD<D>;
  using C = math_detail::Constants<T>;
  const hn::RebindToSigned<D> di;
  constexpr int kBits = C::kMantissaBits;
  const auto tiny = hn::Lt(x, hn::Set(d, C::kSmallestNormal));
  const auto scaled = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, T(int64_t{1} << kBits))), x);
  // Exponent and mantissa such that the mantissa lies in [sqrt(1/2), sqrt(2)).
  const auto bits = hn::BitCast(di, scaled);
  const auto root = hn::BitCast(di, hn::Set(d, T(0.70710678118654752440)));
  const auto exponent = hn::ShiftRight<kBits>(hn::Sub(bits, root));
  const auto mantissa = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<kBits>(exponent)));
  const auto n =
      hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(tiny, hn::Set(d, T(kBits))));
  const auto fraction = math_detail::log1p_fraction(d, hn::Sub(mantissa, hn::Set(d, T(1))));
  auto result =
      hn::MulAdd(n, hn::Set(d, C::kLn2High), hn::MulAdd(n, hn::Set(d, C::kLn2Low), fraction));
  result = hn::IfThenElse(hn::Eq(x, hn::Inf(d)), x, result);
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(hn::Inf(d)), result);
  return hn::IfThenElse(hn::Ge(x, hn::Zero(d)), result, hn::NaN(d));
}

// 1 / x for 2^-125 < |x| < 2^125, to an ulp: with AVX-512, whose division is slow and whose
// estimate has 14 bits, by a Newton step.
template <class D>
requires math_detail::Float<D> HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> reciprocal(
    D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  const auto estimate = hn::ApproximateReciprocal(x);
  return hn::MulAdd(estimate, hn::NegMulAdd(x, estimate, hn::Set(d, 1.0f)), estimate);
#else
  return hn::Div(hn::Set(d, 1.0f), x);
#endif
}
template <class D>
requires math_detail::Double<D> HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> reciprocal(
    D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::Div(hn::Set(d, 1.0), x);
}

// tanh x = m / (m + 2), m = e^(2|x|) - 1 without cancellation: exact to a few ulps of the result
// for small x too.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> tanh(D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using T = hn::TFromD<D>;
  const auto one = hn::Set(d, T(1));
  using C = math_detail::Constants<T>;
  const auto size = at_most(d, hn::Set(d, C::kTanhIsOne), hn::Abs(x));
  hn::Vec<D> rounded;
  const auto f = math_detail::reduce_exp(d, hn::Add(size, size), C::kRoundToPower, &rounded);
  const auto power = math_detail::power_of_two(d, rounded);
  const auto m = hn::MulAdd(hn::Mul(power, f), math_detail::expm1_over(d, f), hn::Sub(power, one));
  return hn::CopySignToAbs(hn::Mul(m, reciprocal(d, hn::Add(m, hn::Set(d, T(2))))), x);
}

// 1 / (1 + e^-x); 0 where e^-x is past 2^125 (2^1022).
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> sigmoid(D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using T = hn::TFromD<D>;
  const auto lowest = hn::Set(d, sizeof(T) == 4 ? T(-86.6) : T(-708.3));
  const auto bounded = at_least(d, lowest, x);
  const auto result = reciprocal(d, hn::Add(hn::Set(d, T(1)), exp_bounded(d, hn::Neg(bounded))));
  return hn::IfThenZeroElse(hn::Lt(x, lowest), result);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
