#include "engine/loops/rows.h"

#include <algorithm>
#include <cmath>

#include "engine/call/view.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/loops/rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace rows {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void fill(T* from, T* to, T value) {
  for (; from < to; ++from) *from = value;
}

template <class T>
void mask(const Tile<T>& tile, T* s, T value) {
  const size_t padded = tile.padded_keys();
  if (!tile.masked && padded == tile.nk) return;
  for (size_t r = 0; r < tile.nq; ++r, s += tile.s_stride) {
    const size_t begin = tile.row_begin(r), end = tile.row_end(r);
    fill(s, s + begin, value);
    fill(s + end, s + padded, value);
    if (!tile.masked || !tile.keep) continue;
    const uint8_t* HWY_RESTRICT keep = tile.keep + r * tile.keep_stride;
    for (size_t c = begin; c < end; ++c) s[c] = keep[c] ? s[c] : value;
  }
}

// One chain a row in the order of the columns, as in the products: a query with one key then has
// exactly the row term that its gradient subtracts. Rows run side by side.
template <class T, size_t kRows>
void dot_rows(const T* HWY_RESTRICT a, size_t a_stride, const T* HWY_RESTRICT b, size_t b_stride,
              size_t width, T* out) {
  const hn::CappedTag<T, 1> d;
  hn::Vec<decltype(d)> sum[kRows];
  for (size_t r = 0; r < kRows; ++r) sum[r] = hn::Zero(d);
  for (size_t e = 0; e < width; ++e) {
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      sum[r] = hn::MulAdd(hn::Set(d, a[r * a_stride + e]), hn::Set(d, b[r * b_stride + e]), sum[r]);
    }
  }
  for (size_t r = 0; r < kRows; ++r) out[r] = hn::GetLane(sum[r]);
}

template <class T>
void dots(const T* a, size_t a_stride, const T* b, size_t b_stride, size_t rows, size_t width,
          T* out) {
  size_t r = 0;
  for (; r + 8 <= rows; r += 8)
    dot_rows<T, 8>(a + r * a_stride, a_stride, b + r * b_stride, b_stride, width, out + r);
  for (; r < rows; ++r)
    dot_rows<T, 1>(a + r * a_stride, a_stride, b + r * b_stride, b_stride, width, out + r);
}

template <class T>
void scale(T* x, size_t stride, size_t rows, size_t width, const T* factor) {
  for (size_t r = 0; r < rows; ++r, x += stride) {
    const T f = factor[r];
    if (f == 0)
      fill(x, x + width, T(0));
    else
      for (size_t e = 0; e < width; ++e) x[e] *= f;
  }
}

// kVectors vectors of the result stay in registers while all rows pass.
template <class T, size_t kVectors>
HWY_INLINE void gather_columns(const T* HWY_RESTRICT weights, const int32_t* HWY_RESTRICT index,
                               size_t n, const T* rows, size_t stride, Into into, T* out) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  hn::Vec<decltype(d)> sum[kVectors];
  for (size_t v = 0; v < kVectors; ++v)
    sum[v] = into == Into::kStore ? hn::Zero(d) : hn::LoadU(d, out + v * N);
  for (size_t i = 0; i < n; ++i) {
    if (weights[i] == 0) continue;
    const auto w = hn::Set(d, weights[i]);
    const T* row = rows + static_cast<size_t>(index[i]) * stride;
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::MulAdd(w, hn::LoadU(d, row + v * N), sum[v]);
  }
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, out + v * N);
}

template <class T>
void gather(const T* weights, const int32_t* index, size_t n, const T* rows, size_t stride,
            size_t width, Into into, T* out) {
  if (n == 0) {  // there may be no rows at all, and no address to count from
    if (into == Into::kStore) fill(out, out + width, T(0));
    return;
  }
  const size_t N = hn::Lanes(hn::ScalableTag<T>());
  size_t e = 0;
  for (; e + 8 * N <= width; e += 8 * N)
    gather_columns<T, 8>(weights, index, n, rows + e, stride, into, out + e);
  for (; e + 4 * N <= width; e += 4 * N)
    gather_columns<T, 4>(weights, index, n, rows + e, stride, into, out + e);
  for (; e + 2 * N <= width; e += 2 * N)
    gather_columns<T, 2>(weights, index, n, rows + e, stride, into, out + e);
  for (; e + N <= width; e += N)
    gather_columns<T, 1>(weights, index, n, rows + e, stride, into, out + e);
  if (e == width) return;
  if (into == Into::kStore) fill(out + e, out + width, T(0));
  for (size_t i = 0; i < n; ++i) {
    if (weights[i] == 0) continue;
    const T* row = rows + static_cast<size_t>(index[i]) * stride;
    for (size_t c = e; c < width; ++c) out[c] += weights[i] * row[c];
  }
}

template <class T>
void gather_dots(const T* row, const int32_t* index, size_t n, const T* rows, size_t stride,
                 size_t width, T* out) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  for (size_t i = 0; i < n; i += 4) {
    const size_t some = std::min<size_t>(4, n - i);
    const T* other[4];
    hn::Vec<decltype(d)> sum[4];
    for (size_t j = 0; j < 4; ++j) {
      other[j] = rows + static_cast<size_t>(index[i + std::min(j, some - 1)]) * stride;
      sum[j] = hn::Zero(d);
    }
    size_t e = 0;
    for (; e + N <= width; e += N) {
      const auto x = hn::LoadU(d, row + e);
#pragma GCC unroll 4
      for (size_t j = 0; j < 4; ++j) sum[j] = hn::MulAdd(x, hn::LoadU(d, other[j] + e), sum[j]);
    }
    T total[4];
    sum_four(d, sum, total);
    for (; e < width; ++e)
      for (size_t j = 0; j < some; ++j) total[j] += row[e] * other[j][e];
    std::copy_n(total, some, out + i);
  }
}

template <class T>
size_t find_above(const T* x, size_t from, size_t n, T threshold) {
  const hn::ScalableTag<T> d;
  const auto limit = hn::Set(d, threshold);
  for (size_t i = from; i < n; i += hn::Lanes(d)) {
    const intptr_t first = hn::FindFirstTrue(d, hn::Gt(hn::LoadU(d, x + i), limit));
    if (first >= 0) return std::min(n, i + static_cast<size_t>(first));
  }
  return n;
}

// y - y is 0 for every finite y = reach x and NaN for the others; reach is the largest number over
// the bound of rows.h.
template <class T>
bool finite(const T* x, size_t stride, size_t rows, size_t width) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  if (stride == width) {  // one long row
    width *= rows;
    rows = std::min<size_t>(1, rows);
  }
  constexpr T kReach = sizeof(T) == 4 ? T(0x1p67) : T(0x1p515);
  auto a = hn::Zero(d), b = a, c = a, f = a;
  T rest = 0;
  const auto zero_of = [d](const T* p) HWY_ATTR {
    const auto v = hn::Mul(hn::LoadU(d, p), hn::Set(d, kReach));
    return hn::Sub(v, v);
  };
  for (size_t r = 0; r < rows; ++r, x += stride) {
    size_t e = 0;
    for (; e + 4 * N <= width; e += 4 * N) {
      a = hn::Add(a, zero_of(x + e));
      b = hn::Add(b, zero_of(x + e + N));
      c = hn::Add(c, zero_of(x + e + 2 * N));
      f = hn::Add(f, zero_of(x + e + 3 * N));
    }
    for (; e + N <= width; e += N) a = hn::Add(a, zero_of(x + e));
    for (; e < width; ++e) rest += kReach * x[e] - kReach * x[e];
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, f)))) + rest == 0;
}

template <class T>
const RowLoops<T>& table() {
  static constexpr RowLoops<T> kTable{mask<T>,        dots<T>,       scale<T>, gather<T>,
                                      gather_dots<T>, find_above<T>, finite<T>};
  return kTable;
}

// The conversions are plain loops; the compiler vectorises those that a target has instructions
// for.
void from_bfloat(const uint16_t* HWY_RESTRICT in, size_t n, float* HWY_RESTRICT out) {
  for (size_t i = 0; i < n; ++i) out[i] = bfloat_to_float(in[i]);
}
void to_bfloat(const float* HWY_RESTRICT in, size_t n, uint16_t* HWY_RESTRICT out) {
  for (size_t i = 0; i < n; ++i) out[i] = float_to_bfloat(in[i]);
}
void from_half(const uint16_t* in, size_t n, float* out) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> d16;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(in + i))), d,
               out + i);
  }
  for (; i < n; ++i) out[i] = half_to_float(in[i]);
}

}  // namespace rows

const RowLoops<float>& row_loops_f32() { return rows::table<float>(); }
const RowLoops<double>& row_loops_f64() { return rows::table<double>(); }
void load_bfloat(const uint16_t* in, size_t n, float* out) { rows::from_bfloat(in, n, out); }
void store_bfloat(const float* in, size_t n, uint16_t* out) { rows::to_bfloat(in, n, out); }
void load_half(const uint16_t* in, size_t n, float* out) { rows::from_half(in, n, out); }

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {

HWY_EXPORT(row_loops_f32);
HWY_EXPORT(row_loops_f64);
HWY_EXPORT(load_bfloat);
HWY_EXPORT(store_bfloat);
HWY_EXPORT(load_half);

template <>
const RowLoops<float>& row_loops<float>() {
  return HWY_DYNAMIC_DISPATCH(row_loops_f32)();
}
template <>
const RowLoops<double>& row_loops<double>() {
  return HWY_DYNAMIC_DISPATCH(row_loops_f64)();
}

namespace {

template <class Stored>
Stored* row_at(const Rows& rows, size_t row) {
  return reinterpret_cast<Stored*>(rows.data) + static_cast<int64_t>(row) * rows.stride;
}

}  // namespace

template <class T>
void load_rows(DType dtype, const Rows& rows, size_t row0, size_t n, size_t width, T* out,
               size_t out_stride) {
  if (out_stride == width && rows.stride == static_cast<int64_t>(width) && n > 1) {
    Rows one = rows;
    one.data = rows.data + row0 * width * size_of(dtype);
    return load_rows(dtype, one, 0, 1, n * width, out, n * width);
  }
  for (size_t r = 0; r < n; ++r, out += out_stride) {
    if constexpr (sizeof(T) == 8) {
      std::copy_n(row_at<const double>(rows, row0 + r), width, out);
    } else {
      switch (dtype) {
        case DType::kBFloat16:
          HWY_DYNAMIC_DISPATCH(load_bfloat)(row_at<const uint16_t>(rows, row0 + r), width, out);
          break;
        case DType::kFloat16:
          HWY_DYNAMIC_DISPATCH(load_half)(row_at<const uint16_t>(rows, row0 + r), width, out);
          break;
        default:
          std::copy_n(row_at<const float>(rows, row0 + r), width, out);
      }
    }
  }
}

template <class T>
void store_rows(const T* in, size_t in_stride, size_t n, size_t width, DType dtype,
                const Rows& rows, size_t row0) {
  // Rows without gaps are one long row.
  if (in_stride == width && rows.stride == static_cast<int64_t>(width) && n > 1) {
    Rows one = rows;
    one.data = rows.data + row0 * width * size_of(dtype);
    return store_rows(in, n * width, 1, n * width, dtype, one, 0);
  }
  for (size_t r = 0; r < n; ++r, in += in_stride) {
    if constexpr (sizeof(T) == 8) {
      std::copy_n(in, width, row_at<double>(rows, row0 + r));
    } else {
      switch (dtype) {
        case DType::kBFloat16:
          HWY_DYNAMIC_DISPATCH(store_bfloat)(in, width, row_at<uint16_t>(rows, row0 + r));
          break;
        case DType::kFloat16:
          for (size_t e = 0; e < width; ++e)
            row_at<uint16_t>(rows, row0 + r)[e] = float_to_half(in[e]);
          break;
        default:
          std::copy_n(in, width, row_at<float>(rows, row0 + r));
      }
    }
  }
}

template void load_rows<float>(DType, const Rows&, size_t, size_t, size_t, float*, size_t);
template void load_rows<double>(DType, const Rows&, size_t, size_t, size_t, double*, size_t);
template void store_rows<float>(const float*, size_t, size_t, size_t, DType, const Rows&, size_t);
template void store_rows<double>(const double*, size_t, size_t, size_t, DType, const Rows&, size_t);

}  // namespace fovea::engine
#endif
