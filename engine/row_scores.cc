#include "engine/row_scores.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/row_scores.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace row_scores_detail {

namespace hn = hwy::HWY_NAMESPACE;

// Keys are read from this many places at once: the hardware follows a stream by itself, but starts
// anew at every page, and one stream leaves most of the memory's lanes idle (7.5 GB/s of one core
// against 11 from four, on an Intel server).
constexpr size_t kStreams = 4;

// Keys j, j + step, ...
template <class T, size_t kKeys>
HWY_INLINE void some_keys(const RowScores<T>& w, const T* q, size_t j, size_t step, T* out) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  hn::Vec<decltype(d)> sum[kKeys];
  for (size_t i = 0; i < kKeys; ++i) sum[i] = hn::Zero(d);
  const T* k = w.k + j * w.k_stride;
  size_t e = 0;
  for (; e + N <= w.width; e += N) {
    const auto left = hn::LoadU(d, q + e);
#pragma GCC unroll 4
    for (size_t i = 0; i < kKeys; ++i)
      sum[i] = hn::MulAdd(left, hn::LoadU(d, k + i * step * w.k_stride + e), sum[i]);
  }
  for (size_t i = 0; i < kKeys; ++i) {
    T total = hn::GetLane(hn::SumOfLanes(d, sum[i]));
    for (size_t c = e; c < w.width; ++c) total += q[c] * k[i * step * w.k_stride + c];
    out[j + i * step] = w.scale * total;
  }
}

template <class T>
void run(const RowScores<T>& w) {
  constexpr size_t kLine = 64 / sizeof(T);
  const size_t step = w.n / kStreams;
  for (size_t j = 0; j < step; ++j) {
    for (size_t i = 0; i < kStreams; ++i) {
      const T* next = w.next + (j + i * step) * w.next_stride;
      for (size_t e = 0; e < w.next_width; e += kLine) __builtin_prefetch(next + e, 0, 2);
    }
    for (size_t r = 0; r < w.rows; ++r)
      some_keys<T, kStreams>(w, w.q + r * w.q_stride, j, step, w.out + r * w.out_stride);
  }
  for (size_t j = step * kStreams; j < w.n; ++j) {
    for (size_t r = 0; r < w.rows; ++r)
      some_keys<T, 1>(w, w.q + r * w.q_stride, j, 1, w.out + r * w.out_stride);
  }
}

}  // namespace row_scores_detail

void row_scores_f32(const RowScores<float>& work) { row_scores_detail::run(work); }
void row_scores_f64(const RowScores<double>& work) { row_scores_detail::run(work); }

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(row_scores_f32);
HWY_EXPORT(row_scores_f64);
template <>
void row_scores<float>(const RowScores<float>& work) {
  HWY_DYNAMIC_DISPATCH(row_scores_f32)(work);
}
template <>
void row_scores<double>(const RowScores<double>& work) {
  HWY_DYNAMIC_DISPATCH(row_scores_f64)(work);
}
}  // namespace fovea::engine
#endif
