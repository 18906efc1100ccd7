// The weight of a score in a softmax: e^x for x <= 0, the score less the row's largest.
#include <cstddef>

#if defined(FOVEA_ENGINE_SIMD_WEIGHT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_SIMD_WEIGHT_INL_H_
#undef FOVEA_ENGINE_SIMD_WEIGHT_INL_H_
#else
#define FOVEA_ENGINE_SIMD_WEIGHT_INL_H_
#endif

#include "engine/simd/math-inl.h"
#include "engine/simd/table-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {

// e^x for x <= 0 (or a little more): exactly 1 at 0, exactly 0 for -infinity; NaN stays.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> weight_of(D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using T = hn::TFromD<D>;
  const auto log2_e = hn::Set(d, T(1.44269504088896340736));
#if FOVEA_HAS_TABLES
  if constexpr (sizeof(T) == 4 && hn::MaxLanes(D()) == HWY_LANES(float)) {
    static constexpr Table kPowers = table_of(
        [](size_t i) { return static_cast<float>(power_of_two(static_cast<double>(i) / 32)); });
    return power_by_table(d, kPowers, x, log2_e, -125);
  }
#endif
  return exp2_bounded(d, hn::Mul(x, log2_e));
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
