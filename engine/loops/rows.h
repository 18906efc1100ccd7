// Small loops over rows and tiles that several paths use; one table for each SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/call/problem.h"
#include "engine/call/view.h"
#include "engine/loops/product.h"
#include "engine/tile.h"

namespace fovea::engine {

template <class T>
struct RowLoops {
  // Writes `value` to the masked entries and the padding of s, which has tile.nq rows,
  // tile.s_stride apart.
  void (*mask)(const Tile<T>& tile, T* s, T value);
  // out[r] = a[r] . b[r]
  void (*dots)(const T* a, size_t a_stride, const T* b, size_t b_stride, size_t rows, size_t width,
               T* out);
  // x[r] *= factor[r]; a row with factor 0 becomes zeros, whatever it held.
  void (*scale)(T* x, size_t stride, size_t rows, size_t width, const T* factor);
  // out = sum_i weights[i] rows[index[i]] on top of out (into: store or add); zero weights read no
  // row.
  void (*gather)(const T* weights, const int32_t* index, size_t n, const T* rows, size_t stride,
                 size_t width, Into into, T* out);
  // out[i] = row . rows[index[i]]
  void (*gather_dots)(const T* row, const int32_t* index, size_t n, const T* rows, size_t stride,
                      size_t width, T* out);
  // The first place from `from` on where x exceeds `threshold`, or n. x may be read up to
  // kRowPadding - 1 elements past n.
  size_t (*find_above)(const T* x, size_t from, size_t n, T threshold);
  // Neither NaN nor infinity, nor so large that the square of a difference is one (2^61 in float,
  // 2^509 in double): products with a weight of 0 are 0.
  bool (*finite)(const T* x, size_t stride, size_t rows, size_t width);
};

template <class T>
const RowLoops<T>& row_loops();

// Rows [row0, row0 + n) of `rows` (of type `dtype`) in the arithmetic type.
template <class T>
void load_rows(DType dtype, const Rows& rows, size_t row0, size_t n, size_t width, T* out,
               size_t out_stride);
template <class T>
void store_rows(const T* in, size_t in_stride, size_t n, size_t width, DType dtype,
                const Rows& rows, size_t row0);

// The rows in place, if they can be used without conversion; otherwise null.
template <class T>
T* direct(DType dtype, const Rows& rows, size_t row0) {
  if (dtype != dtype_of<T>()) return nullptr;
  return reinterpret_cast<T*>(rows.data) + static_cast<int64_t>(row0) * rows.stride;
}

}  // namespace fovea::engine
