#include "engine/loops/product.h"

#include <algorithm>
#include <cstdlib>

#include "engine/simd/subnormals.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/loops/product.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/pack-inl.h"
#include "engine/simd/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace product {

template <class T>
void score(const Tile<T>& tile, const T* left, size_t left_stride, size_t width, const T* panels,
           const Addend<T>& addend, T* out) {
  const FlushSubnormals flush;
  constexpr size_t W = kPanelWidth<T>, N = kLanes<T>;
  Block<T> block{.a_stride = left_stride,
                 .b_stride = W,
                 .c_stride = tile.s_stride,
                 .depth = width,
                 .into = Into::kStore,
                 .alpha = 1};
  // Rows that overlap are one short list, which stays in the first-level cache: nothing to prefetch.
  const bool one_list = std::abs(addend.stride) < static_cast<int64_t>(W);
  // The same rows of the next panel.
  const auto prefetch_beside = [&](const T* added, Block<T>& m) HWY_ATTR {
    m.prefetch = reinterpret_cast<const char*>(added + W);
    m.prefetch_stride = addend.stride * static_cast<int64_t>(sizeof(T));
    return true;  // there always is one
  };
  const auto row_block = [&](size_t r, size_t n, size_t column) HWY_ATTR {
    size_t begin, end;
    reach(tile, r, n, &begin, &end);
    if (end <= column || begin >= column + W) return;
    block.a = left + r * left_stride;
    const size_t vectors = (std::min(end - column, W) + N - 1) / N;
    for (size_t v = (std::max(begin, column) - column) / N, m; v < vectors; v += m) {
      m = vectors_of(vectors - v);
      const size_t c = column + v * N;
      block.b = panels + column * width + v * N;
      block.c = out + r * tile.s_stride + c;
      if (!addend.data) {
        multiply_and_prefetch(tile.prefetch, n, m, block);
        continue;
      }
      const T* added = addend.data + static_cast<ptrdiff_t>(r) * addend.stride + c;
      const bool inside =
          c + m * N <= tile.nk;  // the addend ends with the keys, the scores with a whole vector
      block.addend = {inside ? added : nullptr, addend.stride};
      if (one_list) {
        multiply_and_prefetch(tile.prefetch, n, m, block);
      } else {
        prefetch_beside(added, block);
        multiply_any<T, Side::kPlain, Prefetch::kBlock>(n, m, block);
      }
      if (inside) continue;
      for (size_t i = 0; i < n; ++i, added += addend.stride) {
        for (size_t j = 0; c + j < tile.nk; ++j) block.c[i * tile.s_stride + j] += added[j];
      }
    }
  };
  for (size_t column = 0; column < tile.nk; column += W) {
    size_t done = 0;
    if (!tile.masked && tile.nk - column >= W) {
      block.a = left;
      block.b = panels + column * width;
      block.c = out + column;
      block.addend = {addend.data ? addend.data + column : nullptr, addend.stride};
      done = multiply_down<T, Side::kPlain>(tile.nq, block, [&](Block<T>& m) HWY_ATTR {
        return addend.data && !one_list ? prefetch_beside(m.addend.data, m)
                                        : prefetch_next(tile.prefetch, m);
      });
    }
    for (size_t r = done, n; r < tile.nq; r += n) {
      n = rows_of(tile.nq - r);
      row_block(r, n, column);
    }
  }
}

template <class T>
const Products<T>& table() {
  static constexpr Products<T> kTable{pack<T>, score<T>, aggregate<T>, transposed<T>};
  return kTable;
}

}  // namespace product

const Products<float>& products_f32() { return product::table<float>(); }
const Products<double>& products_f64() { return product::table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(products_f32);
HWY_EXPORT(products_f64);

template <>
const Products<float>& products<float>() {
  return HWY_DYNAMIC_DISPATCH(products_f32)();
}
template <>
const Products<double>& products<double>() {
  return HWY_DYNAMIC_DISPATCH(products_f64)();
}
}  // namespace fovea::engine
#endif
