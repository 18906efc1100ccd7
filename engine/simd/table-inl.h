// Tables of 32 floats that stay in two registers: one instruction looks up a whole vector. AVX-512
// only (FOVEA_HAS_TABLES).
#include <array>
#include <cstddef>

#ifndef FOVEA_ENGINE_TABLE_H_
#define FOVEA_ENGINE_TABLE_H_
namespace fovea::engine {

using Table = std::array<float, 32>;

template <class Entry>
constexpr Table table_of(const Entry& entry) {
  Table table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = entry(i);
  return table;
}
// e^x and 2^x while compiling, |x| <= 4: a Taylor sum.
constexpr double power_of_e(double x) {
  double sum = 1, term = 1;
  for (int k = 1; k < 40; ++k) sum += term *= x / k;
  return sum;
}
constexpr double power_of_two(double x) { return power_of_e(x * 0.69314718055994530942); }

}  // namespace fovea::engine
#endif

#if defined(FOVEA_ENGINE_TABLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_TABLE_INL_H_
#undef FOVEA_ENGINE_TABLE_INL_H_
#else
#define FOVEA_ENGINE_TABLE_INL_H_
#endif

#include "hwy/highway.h"

#undef FOVEA_HAS_TABLES
#if HWY_TARGET == HWY_AVX3
#define FOVEA_HAS_TABLES 1
#else
#define FOVEA_HAS_TABLES 0
#endif

#if FOVEA_HAS_TABLES
HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {

using TableVector = hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::ScalableTag<float>>;

// The entries at the low five bits of each lane.
HWY_INLINE TableVector look_up(const Table& table, TableVector bits) {
  return TableVector{_mm512_permutex2var_ps(_mm512_loadu_ps(table.data()),
                                            _mm512_castps_si512(bits.raw),
                                            _mm512_loadu_ps(table.data() + 16))};
}

// factor 2^(x power), the table holding factor 2^(i / 32): a table and a polynomial of degree 2
// (5e-8), nine operations where a polynomial alone takes twelve. 0 below 2^lowest, -126 < lowest.
template <class D>
HWY_INLINE TableVector power_by_table(D d, const Table& table, TableVector x, TableVector power,
                                      float lowest) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto round = hn::Set(d, 393216.0f);  // 1.5 * 2^18: adding it rounds to 1/32
  const auto rounded = hn::MulAdd(x, power, round);
  const auto n = hn::Sub(rounded, round);
  const auto f = hn::MulSub(x, power, n);
  const auto whole = look_up(table, rounded);
  const auto slope = hn::MulAdd(f, hn::Set(d, 0.240226507f), hn::Set(d, 0.693157344f));
  const auto mantissa = hn::MulAdd(hn::Mul(whole, f), slope, whole);
  const auto kept = _mm512_cmp_ps_mask(n.raw, hn::Set(d, lowest).raw, _CMP_NLT_UQ);  // NaN is kept
  return TableVector{_mm512_maskz_scalef_ps(kept, mantissa.raw, n.raw)};  // times 2^floor(n)
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();
#endif

#endif  // toggled guard
