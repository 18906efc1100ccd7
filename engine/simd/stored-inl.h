// Rows of any stored type as vectors of the arithmetic type, converted on the way to a register.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/call/view.h"

#if defined(FOVEA_ENGINE_SIMD_STORED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_SIMD_STORED_INL_H_
#undef FOVEA_ENGINE_SIMD_STORED_INL_H_
#else
#define FOVEA_ENGINE_SIMD_STORED_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace stored_detail {
namespace hn = hwy::HWY_NAMESPACE;

template <class S>
uint16_t bits(S x) {
  return std::bit_cast<uint16_t>(x);
}
}  // namespace stored_detail

// One number, either way; to the stored type rounded to nearest.
template <class T, class S>
HWY_INLINE T from_stored(S x) {
  if constexpr (std::is_same_v<S, T>)
    return x;
  else if constexpr (std::is_same_v<S, hwy::bfloat16_t>)
    return bfloat_to_float(stored_detail::bits(x));
  else
    return half_to_float(stored_detail::bits(x));
}
template <class S, class T>
HWY_INLINE S to_stored(T x) {
  if constexpr (std::is_same_v<S, T>)
    return x;
  else if constexpr (std::is_same_v<S, hwy::bfloat16_t>)
    return std::bit_cast<S>(float_to_bfloat(x));
  else
    return std::bit_cast<S>(float_to_half(x));
}

// A whole vector from p.
template <class D, class S>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_stored(D d, const S* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (std::is_same_v<S, hn::TFromD<D>>)
    return hn::LoadU(d, p);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<S, D>(), p));
}

// Its first lanes, zeros after them; no byte beyond is read.
template <class D, class S>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_stored_first(D d, const S* p, size_t lanes) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<S, hn::TFromD<D>>) return hn::MaskedLoad(hn::FirstN(d, lanes), d, p);
#endif
  HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(D())] = {};
  for (size_t i = 0; i < lanes; ++i) buffer[i] = from_stored<hn::TFromD<D>>(p[i]);
  return hn::Load(d, buffer);
}

#if HWY_TARGET != HWY_SCALAR
// bfloat_to_float's inverse, float_to_bfloat, on a vector: to nearest, ties to even, NaN quiet.
template <class D>
HWY_INLINE void store_bfloat(D, hwy::HWY_NAMESPACE::Vec<D> x, hwy::bfloat16_t* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> half;
  const auto bits = hn::BitCast(du, x), high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(du, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
  const auto quiet = hn::Or(high, hn::Set(du, 0x40u));
  const auto result = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
  hn::StoreU(hn::DemoteTo(half, hn::BitCast(hn::RebindToSigned<D>(), result)), half,
             reinterpret_cast<uint16_t*>(p));
}
#endif

// The first `lanes` lanes to p, and no byte beyond.
template <class D, class S>
HWY_INLINE void store_as(D d, hwy::HWY_NAMESPACE::Vec<D> x, S* p, size_t lanes) {
  namespace hn = hwy::HWY_NAMESPACE;
  if (HWY_LIKELY(lanes == hn::Lanes(d))) {
    if constexpr (std::is_same_v<S, hn::TFromD<D>>) return hn::StoreU(x, d, p);
#if HWY_TARGET != HWY_SCALAR
    if constexpr (std::is_same_v<S, hwy::bfloat16_t>) return store_bfloat(d, x, p);
#endif
    if constexpr (std::is_same_v<S, hwy::float16_t>) {
      const hn::Rebind<hwy::float16_t, D> half;
      return hn::StoreU(hn::DemoteTo(half, x), half, p);
    }
  }
  HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(D())];
  hn::Store(x, d, buffer);
  for (size_t i = 0; i < lanes; ++i) p[i] = to_stored<S>(buffer[i]);
}

// A row of `width` numbers in the arithmetic type.
template <class S, class T>
HWY_INLINE void load_row(const S* row, size_t width, T* HWY_RESTRICT out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  size_t e = 0;
  for (; e + N <= width; e += N) hn::StoreU(load_stored(d, row + e), d, out + e);
  for (; e < width; ++e) out[e] = from_stored<T>(row[e]);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
