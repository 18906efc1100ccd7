// x, and 0 where a number is greater than a bound. NaN is not greater: x stays.
#if defined(FOVEA_ENGINE_SIMD_ZERO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_SIMD_ZERO_INL_H_
#undef FOVEA_ENGINE_SIMD_ZERO_INL_H_
#else
#define FOVEA_ENGINE_SIMD_ZERO_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {

// Highway has no comparison that is true of NaN. AVX-512 has: with it the instruction that computes x
// also zeroes it, where Highway's IfThenZeroElse is one instruction more.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
namespace zero_detail {
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Mask<D> not_above(hwy::HWY_NAMESPACE::Vec<D> a,
                                                 hwy::HWY_NAMESPACE::Vec<D> b) {
  constexpr bool kFloat = sizeof(hwy::HWY_NAMESPACE::TFromD<D>) == 4;
  constexpr size_t kBytes = sizeof(a.raw);
  if constexpr (kFloat && kBytes == 64)
    return {_mm512_cmp_ps_mask(a.raw, b.raw, _CMP_NGT_UQ)};
  else if constexpr (kFloat && kBytes == 32)
    return {_mm256_cmp_ps_mask(a.raw, b.raw, _CMP_NGT_UQ)};
  else if constexpr (kFloat)
    return {_mm_cmp_ps_mask(a.raw, b.raw, _CMP_NGT_UQ)};
  else if constexpr (kBytes == 64)
    return {_mm512_cmp_pd_mask(a.raw, b.raw, _CMP_NGT_UQ)};
  else if constexpr (kBytes == 32)
    return {_mm256_cmp_pd_mask(a.raw, b.raw, _CMP_NGT_UQ)};
  else
    return {_mm_cmp_pd_mask(a.raw, b.raw, _CMP_NGT_UQ)};
}
}  // namespace zero_detail
#endif

template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> zero_above(D, hwy::HWY_NAMESPACE::Vec<D> number,
                                                 hwy::HWY_NAMESPACE::Vec<D> bound,
                                                 hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return hn::IfThenElseZero(zero_detail::not_above<D>(number, bound), x);
#else
  return hn::IfThenZeroElse(hn::Gt(number, bound), x);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
