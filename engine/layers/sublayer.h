// What the sublayers of a Transformer compute between their matrix products, each in one pass over
// the rows: add, drop and normalise; rectify and drop. Random numbers of dropout depend on the
// position only (random.h), so backward draws them again and no mask is stored.
//
//   sum = x + drop(y + shift)
//   out = (sum - mean) / sqrt(variance + epsilon) * weight + bias
//
// The variance is the biased one (Ba et al. 2016).
#pragma once

#include <cstddef>

#include "engine/tiles/dropout.h"

namespace fovea::engine {

// Arrays are [rows, width], those of one value per column [width].
template <class T>
struct AddNorm {
  size_t width = 0;
  const T* shift = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;
  T epsilon = 0;
  Dropout dropout;
};

// For the SIMD target in use. All work on rows [first, last).
template <class T>
struct SublayerKernels {
  // y becomes the sum; stats [rows, 2] the mean and 1 / sqrt(variance + epsilon).
  void (*add_norm)(const AddNorm<T>& what, size_t first, size_t last, const T* x, T* y, T* out,
                   T* stats);
  // Gradients from that of `out`. d_y may be d_x where nothing is dropped. `columns` [3, width] has
  // those of weight, bias and shift added to it.
  void (*add_norm_backward)(const AddNorm<T>& what, size_t first, size_t last, const T* sum,
                            const T* stats, const T* d_out, T* d_x, T* d_y, T* columns);
  // y = drop(max(y + shift, 0)); NaN stays.
  void (*rectify)(const T* shift, const Dropout& dropout, size_t width, size_t first, size_t last,
                  T* y);
  // d_y becomes the gradient before the rectifier: what was dropped is 0 in y as well. `columns`
  // [width] has the shift's added.
  void (*rectify_backward)(double scale, size_t width, size_t first, size_t last, const T* y,
                           T* d_y, T* columns);
};
template <class T>
SublayerKernels<T> sublayer_kernels();

}  // namespace fovea::engine
