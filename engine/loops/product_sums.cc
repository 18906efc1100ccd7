// Sums of rows by a tile's weights: over the keys of a query, and over the queries of a key.
#include <algorithm>

#include "engine/loops/prefetch.h"
#include "engine/loops/product.h"
#include "engine/simd/subnormals.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/loops/product_sums.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/narrow-inl.h"
#include "engine/simd/pack-inl.h"
#include "engine/simd/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace product {

// The columns of the result, a few vectors at a time, the last one perhaps partial: body(first
// column, vectors, lanes).
template <class T, class Body>
HWY_INLINE void for_columns(size_t width, const Body& body) {
  constexpr size_t N = kLanes<T>;
  const size_t vectors = width / N;
  size_t v = 0;
  for (size_t m; v < vectors; v += m) {
    m = vectors_of(vectors - v);
    body(v * N, m, size_t{0});
  }
  if (width % N != 0) body(v * N, size_t{1}, width % N);
}

// body<width>() for a narrow width known when compiling; nothing for 0.
template <class Body>
HWY_INLINE void for_width(size_t width, const Body& body) {
  if (width == 1) body.template operator()<1>();
  if (width == 2) body.template operator()<2>();
  if (width == 3) body.template operator()<3>();
  if (width == 4) body.template operator()<4>();
}

// Zero weights may stand beside NaN rows: skip them. Only for tiles that are not finite.
template <class T>
void add_careful(T weight, const T* row, size_t width, T* out) {
  if (weight == 0) return;
  for (size_t e = 0; e < width; ++e) out[e] += weight * row[e];
}

// Rows of the right side that stay in the first-level cache while all rows of the left pass: 128 x
// 4 vectors are 32 KB.
inline constexpr size_t kDepth = 128;
// Rows a kilobyte apart share a quarter of the cache's sets, and fit only when copied together.
template <class T>
bool crowds(size_t stride) {
  return stride * sizeof(T) % 1024 == 0;
}
template <class T>
void aggregate(const Tile<T>& tile, const T* weights, const T* rows, size_t stride, size_t width,
               T alpha, Into into, const T* carry, T* out, size_t out_stride) {
  const FlushSubnormals flush;
  if (!tile.finite) {
    for (size_t r = 0; r < tile.nq; ++r) {
      T* o = out + r * out_stride;
      const T keep = into == Into::kStore ? 0 : into == Into::kAdd ? 1 : carry[r];
      for (size_t e = 0; e < width; ++e) o[e] = keep == 0 ? 0 : keep * o[e];
      for (size_t c = tile.row_begin(r); c < tile.row_end(r); ++c) {
        add_careful(alpha * weights[r * tile.s_stride + c], rows + c * stride, width, o);
      }
    }
    return;
  }
  if (width <= narrow::kNarrow && tile.nk <= kMaxKeys) {
    for_width(width, [&]<size_t kWidth>() HWY_ATTR {
      narrow::aggregate<T, kWidth>(tile, weights, rows, stride, alpha, into, carry, out,
                                   out_stride);
    });
    return;
  }
  HWY_ALIGN T copied[kDepth * kPanelWidth<T>];
  for_columns<T>(width, [&](size_t column, size_t vectors, size_t lanes) HWY_ATTR {
    // A copy pays off if several blocks of rows read it.
    const bool copies = crowds<T>(stride) && lanes == 0 && tile.nq > 4 * kRows;
    Block<T> block{.a_stride = tile.s_stride,
                   .b_stride = copies ? kPanelWidth<T> : stride,
                   .c_stride = out_stride,
                   .into = into,
                   .alpha = alpha,
                   .lanes = lanes};
    for (size_t from = 0; from < std::max<size_t>(1, tile.nk); from += kDepth) {
      const T* right = rows + from * stride + column;
      if (copies) {
        copy_columns(right, stride, std::min(kDepth, tile.nk - from), vectors, copied);
        right = copied;
      }
      block.into = from == 0 ? into : Into::kAdd;
      size_t done = 0;
      if (!tile.masked && vectors == kVectors && lanes == 0) {
        block.a = weights + from;
        block.b = right;
        block.c = out + column;
        block.depth = std::min(kDepth, tile.nk - from);
        block.carry = carry;
        done = multiply_down<T, Side::kPlain>(
            tile.nq, block, [&](Block<T>& m) HWY_ATTR { return prefetch_next(tile.prefetch, m); });
      }
      for (size_t r = done, n; r < tile.nq; r += n) {
        n = rows_of(tile.nq - r);
        size_t begin, end;
        reach(tile, r, n, &begin, &end);
        begin = std::max(begin, from);
        end = std::max(begin, std::min(end, from + kDepth));
        if (begin == end && block.into == Into::kAdd) continue;
        block.a = weights + r * tile.s_stride + begin;
        block.b = right + (begin - from) * block.b_stride;
        block.c = out + r * out_stride + column;
        block.depth = end - begin;
        block.carry = carry ? carry + r : nullptr;
        multiply_and_prefetch(tile.prefetch, n, vectors, block);
      }
    }
  });
}

// Rows [begin, end) of the tile that reach columns [c, c + n).
template <class T>
HWY_INLINE void reached_by(const Tile<T>& tile, size_t c, size_t n, size_t* begin, size_t* end) {
  *begin = 0;
  *end = tile.nq;
  if (!tile.masked) return;
  const auto misses = [&](size_t r) { return tile.row_end(r) <= c || tile.row_begin(r) >= c + n; };
  while (*begin < *end && misses(*begin)) ++*begin;
  while (*end > *begin && misses(*end - 1)) --*end;
}

template <class T>
void transposed(const Tile<T>& tile, const T* weights, const T* rows, size_t stride, size_t width,
                T alpha, Into into, T* out, size_t out_stride) {
  const FlushSubnormals flush;
  if (!tile.finite) {
    for (size_t c = 0; c < tile.nk; ++c) {
      T* o = out + c * out_stride;
      if (into == Into::kStore) std::fill_n(o, width, T(0));
      for (size_t r = 0; r < tile.nq; ++r) {
        if (c < tile.row_begin(r) || c >= tile.row_end(r)) continue;
        add_careful(alpha * weights[r * tile.s_stride + c], rows + r * stride, width, o);
      }
    }
    return;
  }
  if (width <= narrow::kNarrow) {
    for_width(width, [&]<size_t kWidth>() HWY_ATTR {
      narrow::transposed<T, kWidth>(tile, weights, rows, stride, alpha, into, out, out_stride);
    });
    return;
  }
  HWY_ALIGN T copied[kMaxQueries * kPanelWidth<T>];
  for_columns<T>(width, [&](size_t column, size_t vectors, size_t lanes) HWY_ATTR {
    const bool copies = crowds<T>(stride) && lanes == 0 && tile.nk > 4 * kRows;
    if (copies) copy_columns(rows + column, stride, tile.nq, vectors, copied);
    const T* right = copies ? copied : rows + column;
    Block<T> block{.a_stride = tile.s_stride,
                   .b_stride = copies ? kPanelWidth<T> : stride,
                   .c_stride = out_stride,
                   .into = into,
                   .alpha = alpha,
                   .lanes = lanes};
    size_t done = 0;
    if (!tile.masked && vectors == kVectors && lanes == 0) {
      block.a = weights;
      block.b = right;
      block.c = out + column;
      block.depth = tile.nq;
      done = multiply_down<T, Side::kTransposed>(tile.nk, block, [](Block<T>&) { return false; });
    }
    for (size_t c = done, n; c < tile.nk; c += n) {
      n = rows_of(tile.nk - c);
      size_t begin, end;
      reached_by(tile, c, n, &begin, &end);
      if (begin == end && into != Into::kStore) continue;
      block.a = weights + begin * tile.s_stride + c;
      block.b = right + begin * block.b_stride;
      block.c = out + c * out_stride + column;
      block.depth = end - begin;
      multiply_any<T, Side::kTransposed>(n, vectors, block);
    }
  });
}

template void aggregate<float>(const Tile<float>&, const float*, const float*, size_t, size_t,
                               float, Into, const float*, float*, size_t);
template void transposed<float>(const Tile<float>&, const float*, const float*, size_t, size_t,
                                float, Into, float*, size_t);
template void aggregate<double>(const Tile<double>&, const double*, const double*, size_t, size_t,
                                double, Into, const double*, double*, size_t);
template void transposed<double>(const Tile<double>&, const double*, const double*, size_t, size_t,
                                 double, Into, double*, size_t);

}  // namespace product
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();
