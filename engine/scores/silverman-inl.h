// Silverman's kernel (1984): a damped wave.
#if defined(FOVEA_ENGINE_SILVERMAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_SILVERMAN_INL_H_
#undef FOVEA_ENGINE_SILVERMAN_INL_H_
#else
#define FOVEA_ENGINE_SILVERMAN_INL_H_
#endif

#include "engine/scores/decay-inl.h"
#include "engine/simd/math-inl.h"
#include "engine/simd/table-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace kernel {

namespace hn = hwy::HWY_NAMESPACE;

// sin(x) / x for 0 <= x <= pi / 2 in double, by a Taylor sum.
template <class D>
HWY_INLINE hn::Vec<D> sine_over(D d, hn::Vec<D> x) {
  const auto z = hn::Mul(x, x);
  auto sum = number(d, 1);
  for (int k = 12; k > 0; --k)
    sum = hn::NegMulAdd(hn::Mul(z, number(d, 1.0 / ((2 * k) * (2 * k + 1)))), sum, number(d, 1));
  return sum;
}
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

#if FOVEA_HAS_TABLES
// Each half turn of the wave equals the half turn before it, times -e^-pi. With
// u = n pi sqrt(2) + y,
//
//   exp(-v) sin(v + pi / 4) = (-1)^n e^(-n pi) exp(-y / sqrt(2)) sin(y / sqrt(2) + pi / 4),
//
// so a table over n and one polynomial of y are enough. Every fourth coefficient of the latter is 0.
template <class V>
struct HalfTurn {
  V y, size;  // size = (-1)^n e^(-n pi), 0 from n = 27 on
};
template <class D>
HWY_INLINE HalfTurn<hn::Vec<D>> half_turn(D d, hn::Vec<D> u) {
  static constexpr Table kSizes = table_of([](size_t n) {
    double size = n < 27 ? 1 : 0;
    for (size_t i = 0; i < n; ++i) size *= -power_of_e(-kPi);
    return static_cast<float>(size);
  });
  constexpr double kTurn = 4.44288293815836624702;  // pi sqrt(2)
  const auto bounded = at_most(d, number(d, 31 * kTurn), u);
  const auto round = hn::Set(d, math_detail::Constants<float>::kRound);
  const auto rounded = hn::MulAdd(bounded, number(d, 1 / kTurn), round);
  const auto y = hn::NegMulAdd(hn::Sub(rounded, round), number(d, kTurn), bounded);
  return {y, look_up(kSizes, rounded)};
}
// exp(-v) sin(v + pi / 4) / 2 at v = y / sqrt(2), |y| <= pi / sqrt(2); least squares, 5e-9
template <class D>
HWY_INLINE hn::Vec<D> wave(D d, hn::Vec<D> y) {
  const auto square = hn::Mul(y, y);
  auto sum = hn::MulAdd(y, number(d, 1.25091191e-08), number(d, -1.0778772e-07));
  sum = hn::MulAdd(square, sum, number(d, 8.82515542e-06));
  sum = hn::MulAdd(y, sum, number(d, -9.92061323e-05));
  sum = hn::MulAdd(y, sum, number(d, 0.000490903156));
  sum = hn::MulAdd(square, sum, number(d, -0.0147312265));
  sum = hn::MulAdd(y, sum, number(d, 0.0833333358));
  sum = hn::MulAdd(y, sum, number(d, -0.176776767));
  return hn::MulAdd(square, sum, number(d, 0.353553385));
}
// exp(-v) sin(v) / 2 y there; 4e-8 where y > 0, ten times that on the other side, which is e^-pi as
// large
template <class D>
HWY_INLINE hn::Vec<D> wave_slope(D d, hn::Vec<D> y) {
  const auto square = hn::Mul(y, y);
  auto sum = hn::MulAdd(y, number(d, -1.35823981e-07), number(d, 1.07411245e-06));
  sum = hn::MulAdd(square, sum, number(d, -7.05938146e-05));
  sum = hn::MulAdd(y, sum, number(d, 0.00069439353));
  sum = hn::MulAdd(y, sum, number(d, -0.00294533069));
  sum = hn::MulAdd(square, sum, number(d, 0.0589247495));
  sum = hn::MulAdd(y, sum, number(d, -0.249999762));
  return hn::MulAdd(y, sum, number(d, 0.353553414));
}
#endif

// With v = u / sqrt(2): K = exp(-v) sin(v + pi / 4) / 2, K' / u = -exp(-v) sin(v) / 2 u. It goes
// negative: no logarithm.
template <class D>
struct InnerSilverman {
  using V = hn::Vec<D>;
  static constexpr double kRootHalf = 0.70710678118654752440;
  static HWY_INLINE V value(D d, V root, V scale) { return value(d, hn::Mul(root, scale)); }
  static HWY_INLINE ValueAndSlope<V> both(D d, V u) { return {value(d, u), slope(d, u)}; }
  static HWY_INLINE V log_value(D d, V) { return hn::NaN(d); }
  static HWY_INLINE V log_slope(D d, V) { return hn::NaN(d); }

 private:
  static HWY_INLINE V value(D d, V u) {
#if FOVEA_HAS_TABLES
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      const HalfTurn<V> turn = half_turn(d, u);
      return hn::Mul(turn.size, wave(d, turn.y));
    }
#endif
    u = bounded(d, u);
    return hn::Mul(decay<Decay{kRootHalf, 0.5}>(d, u),
                   sine(d, hn::MulAdd(u, number(d, kRootHalf), number(d, kPi / 4))));
  }
  static HWY_INLINE V slope(D d, V u) {
#if FOVEA_HAS_TABLES
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      const HalfTurn<V> turn = half_turn(d, u);
      const V share = hn::Mul(turn.y, reciprocal(d, u));
      return hn::Neg(hn::Mul(hn::Mul(turn.size, share), wave_slope(d, turn.y)));
    }
#endif
    const V phase = bounded(d, u);
    const V ratio = hn::Mul(sine(d, hn::Mul(phase, number(d, kRootHalf))), reciprocal(d, u));
    return hn::Neg(hn::Mul(decay<Decay{kRootHalf, 0.5}>(d, phase), ratio));
  }
  // Past 1000 the decay is 0 whatever the phase.
  static HWY_INLINE V bounded(D d, V u) { return at_most(d, number(d, 1050), u); }
};

}  // namespace kernel
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
