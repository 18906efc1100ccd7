// Loops over the few entries of a row that have weight; one table for each SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::engine {

template <class T>
struct SupportLoops {
  // The elements of x above `bound`, in order, and where they are; returns how many. x is read to
  // whole vectors, up to kRowPadding - 1 elements past n, which must not exceed the bound.
  size_t (*above)(const T* x, size_t n, T bound, T* values, int32_t* places);
  // out[index[i]] += weights[i] row, rows of out `width` apart; zero weights touch none.
  void (*scatter)(const T* weights, const int32_t* index, size_t n, const T* row, size_t width,
                  T* out);
};

template <class T>
const SupportLoops<T>& support_loops();

}  // namespace fovea::engine
