#include "engine/layers/sublayer.h"

#include <cmath>

#include "engine/tiles/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/layers/sublayer.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace sublayer {

namespace hn = hwy::HWY_NAMESPACE;
template <class T>
using V = hn::Vec<hn::ScalableTag<T>>;

// Vectors of a row, the last one short: lanes past its end are zero and not written. (Not all
// targets load masked where memory is not aligned.)
template <class T>
HWY_INLINE V<T> load(const T* from, size_t left) {
  const hn::ScalableTag<T> d;
  if (left >= hn::Lanes(d)) return hn::LoadU(d, from);
  HWY_ALIGN T last[HWY_LANES(T)] = {};
  for (size_t i = 0; i < left; ++i) last[i] = from[i];
  return hn::Load(d, last);
}
template <class T>
HWY_INLINE void store(V<T> v, T* to, size_t left) {
  const hn::ScalableTag<T> d;
  if (left >= hn::Lanes(d)) return hn::StoreU(v, d, to);
  HWY_ALIGN T last[HWY_LANES(T)];
  hn::Store(v, d, last);
  for (size_t i = 0; i < left; ++i) to[i] = last[i];
}
template <class T>
HWY_INLINE V<T> first(V<T> v, size_t left) {
  const hn::ScalableTag<T> d;
  return left >= hn::Lanes(d) ? v : hn::IfThenElseZero(hn::FirstN(d, left), v);
}

// out[c] = in[c] kept and scaled, or 0. A plain integer loop: the compiler vectorises it for each
// target.
template <class T>
HWY_INLINE void drop_row(const Dropout& dropout, size_t r, size_t width, const T* in, T* out) {
  const uint64_t row = random_row(dropout.seed, 0, 0, r);
  const T scale = static_cast<T>(dropout.scale);
  for (size_t c = 0; c < width; ++c)
    out[c] = random_pair(row, static_cast<uint32_t>(c)) < dropout.threshold ? T(0) : scale * in[c];
}

template <class T>
void add_norm(const AddNorm<T>& what, size_t from, size_t to, const T* x, T* y, T* out, T* stats) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d), width = what.width;
  for (size_t r = from; r < to; ++r) {
    const T* HWY_RESTRICT residual = x + r * width;
    T* HWY_RESTRICT sum = y + r * width;
    for (size_t c = 0; c < width; ++c) sum[c] += what.shift[c];
    if (what.dropout) drop_row(what.dropout, r, width, sum, sum);
    V<T> total = hn::Zero(d);
    for (size_t c = 0; c < width; c += lanes) {
      const V<T> s = hn::Add(load(residual + c, width - c), load(sum + c, width - c));
      total = hn::Add(total, s);
      store(s, sum + c, width - c);
    }
    const T mean = sum_of_lanes(d, total) / static_cast<T>(width);
    const V<T> centre = hn::Set(d, mean);
    V<T> squares = hn::Zero(d);
    for (size_t c = 0; c < width; c += lanes) {
      const V<T> s = first<T>(hn::Sub(load(sum + c, width - c), centre), width - c);
      squares = hn::MulAdd(s, s, squares);
    }
    const T inverse =
        1 / std::sqrt(sum_of_lanes(d, squares) / static_cast<T>(width) + what.epsilon);
    T* HWY_RESTRICT normal = out + r * width;
    for (size_t c = 0; c < width; ++c)
      normal[c] = (sum[c] - mean) * inverse * what.weight[c] + what.bias[c];
    stats[2 * r] = mean;
    stats[2 * r + 1] = inverse;
  }
}

// With n = (sum - mean) / sqrt(...) and g = d_out * weight:
//   d sum = (g - mean(g) - n mean(g n)) / sqrt(...).
template <class T>
void add_norm_backward(const AddNorm<T>& what, size_t from, size_t to, const T* sums,
                       const T* stats, const T* d_out, T* d_x, T* d_y, T* columns) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d), width = what.width;
  T* HWY_RESTRICT d_weight = columns;
  T* HWY_RESTRICT d_bias = columns + width;
  T* HWY_RESTRICT d_shift = columns + 2 * width;
  for (size_t r = from; r < to; ++r) {
    const T* HWY_RESTRICT sum = sums + r * width;
    const T* HWY_RESTRICT g = d_out + r * width;
    const V<T> mean = hn::Set(d, stats[2 * r]), inverse = hn::Set(d, stats[2 * r + 1]);
    V<T> total = hn::Zero(d), along = hn::Zero(d);
    for (size_t c = 0; c < width; c += lanes) {
      const size_t left = width - c;
      const V<T> n = hn::Mul(hn::Sub(load(sum + c, left), mean), inverse),
                 given = load(g + c, left);
      const V<T> weighed = hn::Mul(given, load(what.weight + c, left));
      total = hn::Add(total, weighed);
      along = hn::MulAdd(weighed, n, along);
      store(hn::MulAdd(given, n, load(d_weight + c, left)), d_weight + c, left);
      store(hn::Add(given, load(d_bias + c, left)), d_bias + c, left);
    }
    const T share = 1 / static_cast<T>(width);
    const V<T> a = hn::Set(d, sum_of_lanes(d, total) * share),
               b = hn::Set(d, sum_of_lanes(d, along) * share);
    T* HWY_RESTRICT dx = d_x + r * width;
    for (size_t c = 0; c < width; c += lanes) {
      const size_t left = width - c;
      const V<T> n = hn::Mul(hn::Sub(load(sum + c, left), mean), inverse);
      const V<T> weighed = hn::Mul(load(g + c, left), load(what.weight + c, left));
      store(hn::Mul(inverse, hn::NegMulAdd(n, b, hn::Sub(weighed, a))), dx + c, left);
    }
    if (what.dropout) drop_row(what.dropout, r, width, d_x + r * width, d_y + r * width);
    for (size_t c = 0; c < width; ++c) d_shift[c] += d_y[r * width + c];
  }
}

// NaN is not below zero, and stays.
template <class T>
void rectify(const T* shift, const Dropout& dropout, size_t width, size_t from, size_t to, T* y) {
  for (size_t r = from; r < to; ++r) {
    T* HWY_RESTRICT row = y + r * width;
    for (size_t c = 0; c < width; ++c) {
      const T value = row[c] + shift[c];
      row[c] = value <= 0 ? T(0) : value;
    }
    if (dropout) drop_row(dropout, r, width, row, row);
  }
}

template <class T>
void rectify_backward(double scale, size_t width, size_t from, size_t to, const T* y, T* d_y,
                      T* columns) {
  const T factor = static_cast<T>(scale);
  for (size_t r = from; r < to; ++r) {
    const T* HWY_RESTRICT row = y + r * width;
    T* HWY_RESTRICT d = d_y + r * width;
    for (size_t c = 0; c < width; ++c) {
      d[c] = row[c] <= 0 ? T(0) : factor * d[c];
      columns[c] += d[c];
    }
  }
}

}  // namespace sublayer

template <class T>
SublayerKernels<T> kernels() {
  return {&sublayer::add_norm<T>, &sublayer::add_norm_backward<T>, &sublayer::rectify<T>,
          &sublayer::rectify_backward<T>};
}
SublayerKernels<float> sublayer_f32() { return kernels<float>(); }
SublayerKernels<double> sublayer_f64() { return kernels<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(sublayer_f32);
HWY_EXPORT(sublayer_f64);
template <>
SublayerKernels<float> sublayer_kernels<float>() {
  return HWY_DYNAMIC_DISPATCH(sublayer_f32)();
}
template <>
SublayerKernels<double> sublayer_kernels<double>() {
  return HWY_DYNAMIC_DISPATCH(sublayer_f64)();
}
}  // namespace fovea::engine
#endif
