// Convolution with a kernel of its own at every position, shared by the columns of a head:
//
//   out[b, t, c] = sum_j weight[b, t, h(c), j] x[b, t + j - left, c],  h(c) = c heads / width.
//
// Positions outside of the sequence are zero. Sums go over offsets in their order, so the number of
// threads changes no bit.
#pragma once

#include <cstddef>

namespace fovea::engine {

// Arrays: x and out [batch, length, width], weight [batch, length, heads, kernel], without gaps.
struct Convolution {
  size_t length = 0, width = 0, heads = 0, kernel = 0;
  size_t left = 0;  // offsets before the position itself, below `kernel`
};

// For the SIMD target in use. All work on rows [first, last) of batch * length.
template <class T>
struct ConvolutionKernels {
  void (*forward)(const Convolution& what, size_t first, size_t last, const T* x, const T* weight,
                  T* out);
  void (*backward_x)(const Convolution& what, size_t first, size_t last, const T* weight,
                     const T* d_out, T* d_x);
  void (*backward_weight)(const Convolution& what, size_t first, size_t last, const T* x,
                          const T* d_out, T* d_weight);
};
template <class T>
ConvolutionKernels<T> convolution_kernels();

}  // namespace fovea::engine
