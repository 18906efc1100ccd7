// Sums across lanes, four vectors at a time: 13 instructions for four 512-bit sums instead of 28.
#if defined(FOVEA_ENGINE_SIMD_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_SIMD_REDUCE_INL_H_
#undef FOVEA_ENGINE_SIMD_REDUCE_INL_H_
#else
#define FOVEA_ENGINE_SIMD_REDUCE_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::TFromD<D> sum_of_lanes(D d, hwy::HWY_NAMESPACE::Vec<D> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::GetLane(hn::SumOfLanes(d, v));
}

#if HWY_TARGET == HWY_SCALAR
template <class D>
HWY_INLINE void sum_four(D, const hwy::HWY_NAMESPACE::Vec<D>* v,
                         hwy::HWY_NAMESPACE::TFromD<D>* out) {
  for (size_t i = 0; i < 4; ++i) out[i] = hwy::HWY_NAMESPACE::GetLane(v[i]);
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_sums(D d, const hwy::HWY_NAMESPACE::TFromD<D>* p) {
  return hwy::HWY_NAMESPACE::LoadU(d, p);
}
#else
namespace reduce_detail {
namespace hn = hwy::HWY_NAMESPACE;

// Adds the 128-bit blocks of v.
template <class D>
HWY_INLINE auto sum_of_blocks(D, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) <= 16) {
    return v;
  } else {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::UpperHalf(half, v), hn::LowerHalf(half, v)));
  }
}

// Each pair of lanes of the result: a sum over pairs of a, then of b.
template <class D>
HWY_INLINE hn::Vec<D> fold(D d, hn::Vec<D> a, hn::Vec<D> b) {
  return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
}
}  // namespace reduce_detail

// A vector of scores that sum_four has just stored: the processor hands what is stored to a load of
// the same size, and makes a larger one wait until all before it is done.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_sums(D d, const hwy::HWY_NAMESPACE::TFromD<D>* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) <= 16) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_sums(half, p + hn::Lanes(half)), load_sums(half, p));
  }
}

// out[i] = sum of the lanes of v[i], i < 4.
template <class D>
HWY_INLINE void sum_four(D d, const hwy::HWY_NAMESPACE::Vec<D>* v,
                         hwy::HWY_NAMESPACE::TFromD<D>* out) {
  namespace hn = hwy::HWY_NAMESPACE;
  using namespace reduce_detail;
  const auto low = fold(d, v[0], v[1]), high = fold(d, v[2], v[3]);
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    const hn::FixedTag<double, 2> block;
    hn::StoreU(sum_of_blocks(d, low), block, out);
    hn::StoreU(sum_of_blocks(d, high), block, out + 2);
  } else {
    // Lanes alternate v0, v1 and v2, v3: pair them as 64-bit lanes.
    const hn::Repartition<double, D> wide;
    const auto a = hn::BitCast(wide, low), b = hn::BitCast(wide, high);
    const auto all = hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, a, b)),
                             hn::BitCast(d, hn::InterleaveUpper(wide, a, b)));
    const hn::FixedTag<float, 4> block;
    hn::StoreU(sum_of_blocks(d, all), block, out);
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
