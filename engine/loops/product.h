// The matrix products of a tile, for the entries within its rows' ranges; one table for each SIMD
// target and type.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/tile.h"

namespace fovea::engine {

enum class Into { kStore, kAdd, kCarry };  // c = x, c += x, c[r] = carry[r] * c[r] + x

template <class T>
struct Products {
  // kPanelKeys rows of `width`, scaled, transposed into panels of width * kPanelKeys; missing rows
  // are zeros.
  void (*pack)(const T* rows, size_t stride, size_t n, size_t width, T scale, T* panel);
  // out[r][c] = left[r] . panel[:, c] + addend[r][c] for tile.nq x tile.nk entries. Columns that are
  // in no row's range are not written.
  void (*score)(const Tile<T>& tile, const T* left, size_t left_stride, size_t width,
                const T* panels, const Addend<T>& addend, T* out);
  // out[r] = alpha * sum_c weights[r][c] rows[c] (into).
  void (*aggregate)(const Tile<T>& tile, const T* weights, const T* rows, size_t stride,
                    size_t width, T alpha, Into into, const T* carry, T* out, size_t out_stride);
  // out[c] = alpha * sum_r weights[r][c] rows[r] (into).
  void (*transposed)(const Tile<T>& tile, const T* weights, const T* rows, size_t stride,
                     size_t width, T alpha, Into into, T* out, size_t out_stride);
};

template <class T>
const Products<T>& products();

// Columns [begin, end) that rows [r, r + n) of the tile reach.
template <class T>
inline void reach(const Tile<T>& tile, size_t r, size_t n, size_t* begin, size_t* end) {
  *begin = 0;
  *end = tile.nk;
  if (!tile.masked) return;
  *begin = tile.nk;
  *end = 0;
  for (size_t i = r; i < r + n; ++i) {
    *begin = std::min(*begin, tile.row_begin(i));
    *end = std::max(*end, tile.row_end(i));
  }
  *end = std::max(*begin, *end);
}

}  // namespace fovea::engine
