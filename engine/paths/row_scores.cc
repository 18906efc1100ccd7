#include "engine/paths/row_scores.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/paths/row_scores.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace row_scores_detail {

namespace hn = hwy::HWY_NAMESPACE;

// Keys are read from this many places in turn: the hardware follows a stream by itself, but starts
// anew at every page, and one stream leaves most of the memory's lanes idle (7.5 GB/s of one core
// against 11 from four, on an Intel server).
constexpr size_t kStreams = 4;
// Keys of a place before the next: so many sums across lanes are cheaper together.
constexpr size_t kTogether = 4;
// Keys are asked for so many before their turn. Past the last one there is nothing to ask for,
// which does no harm.
constexpr size_t kAhead = 4 * kTogether;

// Keys j, j + 1, ..., kKeys of them.
template <class T, size_t kKeys>
HWY_INLINE void some_keys(const RowScores<T>& w, const T* q, size_t j, T* out) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  hn::Vec<decltype(d)> sum[kTogether];
  for (size_t i = 0; i < kTogether; ++i) sum[i] = hn::Zero(d);
  const T* k = w.k + j * w.k_stride;
  size_t e = 0;
  for (; e + N <= w.width; e += N) {
    const auto left = hn::LoadU(d, q + e);
#pragma GCC unroll 4
    for (size_t i = 0; i < kKeys; ++i)
      sum[i] = hn::MulAdd(left, hn::LoadU(d, k + i * w.k_stride + e), sum[i]);
  }
  T total[kTogether];
  T* to = kKeys == kTogether ? out + j : total;
  sum_four(d, sum, to);
  if (e < w.width) {
    for (size_t i = 0; i < kKeys; ++i)
      for (size_t c = e; c < w.width; ++c) to[i] += q[c] * k[i * w.k_stride + c];
  }
  if (kKeys < kTogether) std::copy_n(total, kKeys, out + j);
}

template <class T>
void run(const RowScores<T>& w) {
  constexpr size_t kLine = 64 / sizeof(T);
  // Lines of kTogether rows on their way to a cache.
  const auto prefetch = [&]<int kCache>(const T* rows, size_t stride, size_t width) {
    for (size_t i = 0; i < kTogether; ++i, rows += stride)
      for (size_t e = 0; e < width; e += kLine) __builtin_prefetch(rows + e, 0, kCache);
  };
  const size_t step = w.n / (kStreams * kTogether) * kTogether;
  for (size_t j = 0; j < step; j += kTogether) {
    for (size_t i = 0; i < kStreams; ++i) {
      const size_t key = j + i * step;
      prefetch.template operator()<2>(w.next + key * w.next_stride, w.next_stride, w.next_width);
      prefetch.template operator()<3>(w.k + (key + kAhead) * w.k_stride, w.k_stride, w.width);
      for (size_t r = 0; r < w.rows; ++r)
        some_keys<T, kTogether>(w, w.q + r * w.q_stride, key, w.out + r * w.out_stride);
    }
  }
  for (size_t j = step * kStreams; j < w.n; ++j) {
    for (size_t r = 0; r < w.rows; ++r)
      some_keys<T, 1>(w, w.q + r * w.q_stride, j, w.out + r * w.out_stride);
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
