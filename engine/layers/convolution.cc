#include "engine/layers/convolution.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/layers/convolution.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace convolution {

namespace hn = hwy::HWY_NAMESPACE;

// sum[c] += factor * row[c]. A plain loop: the compiler vectorises it for each target.
template <class T>
HWY_INLINE void add_scaled(T factor, const T* HWY_RESTRICT row, size_t width, T* HWY_RESTRICT sum) {
  for (size_t c = 0; c < width; ++c) sum[c] += factor * row[c];
}

template <class T>
HWY_INLINE T dot(const T* a, const T* b, size_t width) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> total = hn::Zero(d);
  size_t c = 0;
  for (; c + lanes <= width; c += lanes)
    total = hn::MulAdd(hn::LoadU(d, a + c), hn::LoadU(d, b + c), total);
  T sum = sum_of_lanes(d, total);
  for (; c < width; ++c) sum += a[c] * b[c];
  return sum;
}

// The offsets j of position t whose t + j - left lies in the sequence.
struct Offsets {
  size_t first, last;
};
HWY_INLINE Offsets inside(const Convolution& what, size_t t) {
  return {what.left > t ? what.left - t : 0, std::min(what.kernel, what.length + what.left - t)};
}

template <class T>
void forward(const Convolution& what, size_t from, size_t to, const T* x, const T* weight, T* out) {
  const size_t columns = what.width / what.heads;
  for (size_t r = from; r < to; ++r) {
    const Offsets offsets = inside(what, r % what.length);
    T* HWY_RESTRICT row = out + r * what.width;
    std::fill_n(row, what.width, T(0));
    for (size_t h = 0; h < what.heads; ++h) {
      const T* kernel = weight + (r * what.heads + h) * what.kernel;
      for (size_t j = offsets.first; j < offsets.last; ++j)
        add_scaled(kernel[j], x + (r + j - what.left) * what.width + h * columns, columns,
                   row + h * columns);
    }
  }
}

// Position s is read by those t with t + j - left = s.
template <class T>
void backward_x(const Convolution& what, size_t from, size_t to, const T* weight, const T* d_out,
                T* d_x) {
  const size_t columns = what.width / what.heads;
  for (size_t r = from; r < to; ++r) {
    const size_t s = r % what.length;
    const size_t first = s + what.left >= what.length ? s + what.left - what.length + 1 : 0;
    const size_t last = std::min(what.kernel, s + what.left + 1);
    T* HWY_RESTRICT row = d_x + r * what.width;
    std::fill_n(row, what.width, T(0));
    for (size_t h = 0; h < what.heads; ++h) {
      for (size_t j = first; j < last; ++j) {
        const size_t reader = r + what.left - j;
        add_scaled(weight[(reader * what.heads + h) * what.kernel + j],
                   d_out + reader * what.width + h * columns, columns, row + h * columns);
      }
    }
  }
}

template <class T>
void backward_weight(const Convolution& what, size_t from, size_t to, const T* x, const T* d_out,
                     T* d_weight) {
  const size_t columns = what.width / what.heads;
  for (size_t r = from; r < to; ++r) {
    const Offsets offsets = inside(what, r % what.length);
    for (size_t h = 0; h < what.heads; ++h) {
      T* kernel = d_weight + (r * what.heads + h) * what.kernel;
      std::fill_n(kernel, what.kernel, T(0));
      for (size_t j = offsets.first; j < offsets.last; ++j)
        kernel[j] = dot(d_out + r * what.width + h * columns,
                        x + (r + j - what.left) * what.width + h * columns, columns);
    }
  }
}

}  // namespace convolution

template <class T>
ConvolutionKernels<T> convolution_of() {
  return {&convolution::forward<T>, &convolution::backward_x<T>, &convolution::backward_weight<T>};
}
ConvolutionKernels<float> convolution_f32() { return convolution_of<float>(); }
ConvolutionKernels<double> convolution_f64() { return convolution_of<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(convolution_f32);
HWY_EXPORT(convolution_f64);
template <>
ConvolutionKernels<float> convolution_kernels<float>() {
  return HWY_DYNAMIC_DISPATCH(convolution_f32)();
}
template <>
ConvolutionKernels<double> convolution_kernels<double>() {
  return HWY_DYNAMIC_DISPATCH(convolution_f64)();
}
}  // namespace fovea::engine
#endif
