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
// bfloat_to_float's inverse, float_to_bfloat, on a vector: to nearest, ties to even, NaN quiet. In the
// lower half of each lane.
template <class D>
HWY_INLINE auto bfloat_bits(D, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, x), high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(du, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
  const auto quiet = hn::Or(high, hn::Set(du, 0x40u));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
}
template <class D>
HWY_INLINE void store_bfloat(D d, hwy::HWY_NAMESPACE::Vec<D> x, hwy::bfloat16_t* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<uint16_t, D> half;
  hn::StoreU(hn::DemoteTo(half, hn::BitCast(hn::RebindToSigned<D>(), bfloat_bits(d, x))), half,
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

// Two whole vectors are loaded at once. For bfloat16 the first holds the numbers in even places, the
// second those in odd places. These are the two halves of each 32-bit lane, and cost one instruction
// each; in the order of memory they would cost two.
template <class S, class T>
inline constexpr bool kParted =
    std::conjunction_v<std::bool_constant<HWY_TARGET != HWY_SCALAR>,
                       std::is_same<S, hwy::bfloat16_t>, std::is_same<T, float>>;

template <class V>
struct Two {
  V a, b;
};

template <class D, class S>
HWY_INLINE Two<hwy::HWY_NAMESPACE::Vec<D>> load_two(D d, const S* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (kParted<S, hn::TFromD<D>>) {
    const hn::RebindToUnsigned<D> du;
    const hn::Repartition<uint16_t, D> halves;
    const auto bits = hn::BitCast(du, hn::LoadU(halves, reinterpret_cast<const uint16_t*>(p)));
    return {hn::BitCast(d, hn::ShiftLeft<16>(bits)),
            hn::BitCast(d, hn::And(bits, hn::Set(du, 0xffff0000u)))};
  } else {
    return {load_stored(d, p), load_stored(d, p + hn::Lanes(d))};
  }
}

// What load_two<S> loaded, or a sum of such, to p, in the order of memory again.
template <class S, class D, class Out>
HWY_INLINE void store_two(D d, Two<hwy::HWY_NAMESPACE::Vec<D>> x, Out* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (!kParted<S, hn::TFromD<D>>) {
    store_as(d, x.a, p, hn::Lanes(d));
    store_as(d, x.b, p + hn::Lanes(d), hn::Lanes(d));
  } else if constexpr (std::is_same_v<Out, S>) {
    const auto bits = hn::Or(bfloat_bits(d, x.a), hn::ShiftLeft<16>(bfloat_bits(d, x.b)));
    const hn::Repartition<uint16_t, D> halves;
    hn::StoreU(hn::BitCast(halves, bits), halves, reinterpret_cast<uint16_t*>(p));
  } else {
    hn::StoreInterleaved2(x.a, x.b, d, p);
  }
}

// A row of `width` numbers in the arithmetic type, as load_two and load_stored give them.
template <class S, class T>
HWY_INLINE void load_parted_row(const S* row, size_t width, T* HWY_RESTRICT out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  size_t e = 0;
  for (; e + 2 * N <= width; e += 2 * N) {
    const auto two = load_two(d, row + e);
    hn::StoreU(two.a, d, out + e);
    hn::StoreU(two.b, d, out + e + N);
  }
  for (; e < width; ++e) out[e] = from_stored<T>(row[e]);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
