// Products with few columns, at most kNarrow: lanes run over keys, because the columns would fill a
// small part of one vector.
#if defined(FOVEA_ENGINE_SIMD_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_SIMD_NARROW_INL_H_
#undef FOVEA_ENGINE_SIMD_NARROW_INL_H_
#else
#define FOVEA_ENGINE_SIMD_NARROW_INL_H_
#endif

#include <algorithm>

#include "engine/loops/product.h"
#include "engine/simd/reduce-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace narrow {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kNarrow = 4;

// sum[r][e] = sum over columns [begin, end) of weights[r][c] columns[e][c], whole vectors.
template <class T, size_t kRows, size_t kWidth>
HWY_INLINE void dots(const T* HWY_RESTRICT weights, size_t stride, const T* HWY_RESTRICT columns,
                     size_t begin, size_t end, T* sum) {
  const hn::ScalableTag<T> d;
  constexpr size_t N = HWY_LANES(T);
  hn::Vec<decltype(d)> total[kRows][kWidth];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (size_t e = 0; e < kWidth; ++e) total[r][e] = hn::Zero(d);
  for (size_t c = begin; c < end; c += N) {
#pragma GCC unroll 4
    for (size_t e = 0; e < kWidth; ++e) {
      const auto v = hn::Load(d, columns + e * kMaxKeys + c);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r)
        total[r][e] = hn::MulAdd(hn::LoadU(d, weights + r * stride + c), v, total[r][e]);
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (size_t e = 0; e < kWidth; ++e) sum[r * kWidth + e] = sum_of_lanes(d, total[r][e]);
}

// As Products::aggregate, for tiles of at most kMaxKeys keys. Weights outside a row's range are
// zeros.
template <class T, size_t kWidth>
void aggregate(const Tile<T>& tile, const T* weights, const T* rows, size_t stride, T alpha,
               Into into, const T* carry, T* out, size_t out_stride) {
  constexpr size_t N = HWY_LANES(T);
  HWY_ALIGN T columns[kWidth * kMaxKeys];
  const size_t padded = (tile.nk + N - 1) / N * N;
  for (size_t e = 0; e < kWidth; ++e) {
    T* column = columns + e * kMaxKeys;
    for (size_t c = 0; c < tile.nk; ++c) column[c] = rows[c * stride + e];
    std::fill(column + tile.nk, column + padded, T(0));
  }
  for (size_t r = 0, n; r < tile.nq; r += n) {
    n = tile.nq - r >= 4 ? 4 : 1;
    size_t begin = tile.nk, end = 0;
    for (size_t i = r; i < r + n; ++i) {
      begin = std::min(begin, tile.row_begin(i));
      end = std::max(end, tile.row_end(i));
    }
    T sum[4 * kWidth];
    const T* w = weights + r * tile.s_stride;
    if (n == 4)
      dots<T, 4, kWidth>(w, tile.s_stride, columns, begin / N * N, end, sum);
    else
      dots<T, 1, kWidth>(w, tile.s_stride, columns, begin / N * N, end, sum);
    for (size_t i = 0; i < n; ++i) {
      T* o = out + (r + i) * out_stride;
      for (size_t e = 0; e < kWidth; ++e) {
        const T x = alpha * sum[i * kWidth + e];
        o[e] = into == Into::kStore ? x : into == Into::kAdd ? o[e] + x : carry[r + i] * o[e] + x;
      }
    }
  }
}

// As Products::transposed. Weights outside a row's range are zeros.
template <class T, size_t kWidth>
void transposed(const Tile<T>& tile, const T* weights, const T* rows, size_t stride, T alpha,
                Into into, T* out, size_t out_stride) {
  const hn::ScalableTag<T> d;
  constexpr size_t N = HWY_LANES(T);
  HWY_ALIGN T sum[kWidth * N];
  for (size_t c = 0; c < tile.nk; c += N) {
    hn::Vec<decltype(d)> total[kWidth];
#pragma GCC unroll 4
    for (size_t e = 0; e < kWidth; ++e) total[e] = hn::Zero(d);
    for (size_t r = 0; r < tile.nq; ++r) {
      const auto w = hn::LoadU(d, weights + r * tile.s_stride + c);
#pragma GCC unroll 4
      for (size_t e = 0; e < kWidth; ++e)
        total[e] = hn::MulAdd(w, hn::Set(d, rows[r * stride + e]), total[e]);
    }
#pragma GCC unroll 4
    for (size_t e = 0; e < kWidth; ++e)
      hn::Store(hn::Mul(total[e], hn::Set(d, alpha)), d, sum + e * N);
    for (size_t j = 0; j < std::min(N, tile.nk - c); ++j) {
      T* o = out + (c + j) * out_stride;
      for (size_t e = 0; e < kWidth; ++e)
        o[e] = sum[e * N + j] + (into == Into::kStore ? T(0) : o[e]);
    }
  }
}

}  // namespace narrow
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
