// Operands of the products laid out anew: keys transposed into panels, columns copied together.
#if defined(FOVEA_ENGINE_SIMD_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_SIMD_PACK_INL_H_
#undef FOVEA_ENGINE_SIMD_PACK_INL_H_
#else
#define FOVEA_ENGINE_SIMD_PACK_INL_H_
#endif

#include "engine/simd/product-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace product {

// Rows of a 128-bit block: transposing whole blocks needs no shuffle across them.
template <class T>
inline constexpr size_t kBlock = 16 / sizeof(T);

// Vector of elements [e, e + kBlock) of rows j, j + kBlock, j + 2 kBlock, ...: one row per block.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* rows, size_t stride) {
  if constexpr (hn::MaxLanes(D()) == kBlock<T>) {
    return hn::LoadU(d, rows);
  } else {
    const hn::Half<D> half;
    const size_t rows_below = hn::MaxLanes(half);
    return hn::Combine(d, load_blocks(half, rows + rows_below * stride, stride),
                       load_blocks(half, rows, stride));
  }
}

// Elements [e, e + kBlock) of one vector's worth of keys, scaled and transposed to [kBlock][W].
template <class T>
HWY_INLINE void transpose_block(const T* HWY_RESTRICT rows, size_t stride, T scale,
                                T* HWY_RESTRICT to) {
  constexpr size_t W = kPanelWidth<T>;
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, scale);
  const auto load = [&](size_t i) HWY_ATTR {
    return hn::Mul(factor, load_blocks(d, rows + i * stride, stride));
  };
  if constexpr (sizeof(T) == 8) {
    const auto a = load(0), b = load(1);
    hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
    hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + W);
  } else {
    const hn::Repartition<double, decltype(d)> wide;
    const auto a = load(0), b = load(1), c = load(2), e = load(3);
    const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(d, a, b)),
               ab_high = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
    const auto ce_low = hn::BitCast(wide, hn::InterleaveLower(d, c, e)),
               ce_high = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab_low, ce_low)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab_low, ce_low)), d, to + W);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab_high, ce_high)), d, to + 2 * W);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab_high, ce_high)), d, to + 3 * W);
  }
}

template <class T>
void pack(const T* rows, size_t stride, size_t n, size_t width, T scale, T* panel) {
  constexpr size_t W = kPanelWidth<T>, N = kLanes<T>;
  for (size_t first = 0; first < kPanelKeys; first += W, panel += W * width) {
    for (size_t j = first; j < first + W; j += N) {
      T* to = panel + (j - first);
      size_t e = 0;
      if (j + N <= n) {
        for (; e + kBlock<T> <= width; e += kBlock<T>)
          transpose_block(rows + j * stride + e, stride, scale, to + e * W);
      }
      for (; e < width; ++e) {
        for (size_t i = 0; i < N; ++i)
          to[e * W + i] = j + i < n ? scale * rows[(j + i) * stride + e] : T(0);
      }
    }
  }
}

// `vectors` vectors of each of n rows, a panel's width apart.
template <class T>
void copy_columns(const T* rows, size_t stride, size_t n, size_t vectors, T* to) {
  const hn::ScalableTag<T> d;
  for (size_t i = 0; i < n; ++i, rows += stride, to += kPanelWidth<T>)
    for (size_t v = 0; v < vectors * kLanes<T>; v += kLanes<T>)
      hn::Store(hn::LoadU(d, rows + v), d, to + v);
}

}  // namespace product
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
