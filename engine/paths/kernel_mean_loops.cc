// The loops of kernel means: lanes over keys, four queries at a time, weights never stored.
// kernel.cc has the equations.
#include "engine/paths/kernel_mean.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/paths/kernel_mean_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/scores/mean_weights-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace kernel_mean {

template <class Weight>
struct MeanSums {
  template <size_t kRows>
  static HWY_INLINE void rows(const MeanBlock& m, size_t row, size_t begin, size_t end) {
    const D d;
    V sum[kRows], first[kRows], more[kMeanValues][kRows];  // the first value's sums in registers
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) sum[r] = first[r] = hn::Zero(d);
    for (size_t c = 1; c < m.values; ++c)
      for (size_t r = 0; r < kRows; ++r) more[c][r] = hn::Zero(d);
    const float* HWY_RESTRICT q = m.query + row * kMeanQuery;
    V query[kRows][kMeanQuery];
    for (size_t r = 0; r < kRows; ++r) spread<Weight>(q + r * kMeanQuery, query[r]);
    const auto start = [&](size_t g, V* to) HWY_ATTR {
      V key[kWidth];
      load_key(m, g, key);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r)
        to[r] = Weight::start(distance(query[r], key), base_of(m, row + r));
    };
    V started[kRows];
    if (Weight::kAhead && begin < end) start(begin, started);
    for (size_t g = begin; g < end; ++g) {
      const float* HWY_RESTRICT x = m.panel + g * stride(m);
      V w[kRows];
      if constexpr (!Weight::kAhead) start(g, started);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) w[r] = started[r];
      if constexpr (Weight::kAhead) start(std::min(g + 1, end - 1), started);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        w[r] = Weight::finish(w[r], query[r][kWidth]);
        if constexpr (kRows == 1) w[r] = hn::IfThenElseZero(hn::FirstN(d, m.keys - g * N), w[r]);
        sum[r] = hn::Add(sum[r], w[r]);
      }
      const V value = hn::Load(d, x + kWidth * N);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) first[r] = hn::MulAdd(w[r], value, first[r]);
      for (size_t c = 1; c < m.values; ++c) {
        const V v = hn::Load(d, x + (kWidth + c) * N);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) more[c][r] = hn::MulAdd(w[r], v, more[c][r]);
      }
    }
    for (size_t r = 0; r < kRows; ++r) {
      float* sums = m.sums + (row + r) * (1 + m.values);
      sums[0] += sum_of_lanes(d, sum[r]);
      sums[1] += sum_of_lanes(d, first[r]);
      for (size_t c = 1; c < m.values; ++c) sums[1 + c] += sum_of_lanes(d, more[c][r]);
    }
  }
};

template <template <class> class Kernel>
void nearest(const MeanBlock& m, float* base) {
  const D d;
  for (size_t row = 0; row < m.rows; ++row) {
    V least = hn::Inf(d), query[kMeanQuery];
    spread<ByLog<Kernel>>(m.query + row * kMeanQuery, query);
    for (size_t g = 0; g * N < m.keys; ++g) {
      V key[kWidth];
      load_key(m, g, key);
      const V z = distance(query, key).z();
      least = hn::Min(least, hn::IfThenElse(hn::FirstN(d, m.keys - g * N), z, hn::Inf(d)));
    }
    const V log = Kernel<D>::log_value(d, hn::MinOfLanes(d, least));
    base[row] = HWY_MAX(base[row], hn::GetLane(log));
  }
}

template <template <class> class Kernel>
struct Forward {
  static constexpr MeanLoops loops() {
    using Value = MeanSums<ByValue<Kernel>>;
    if constexpr (Positive<Kernel>)
      return {N, all_rows<Value>, each_row<MeanSums<ByLog<Kernel>>>, nearest<Kernel>};
    else
      return {N, all_rows<Value>, nullptr, nullptr};
  }
};

}  // namespace kernel_mean

const MeanLoops& mean_loops_for(choice::KernelName name) {
  static constexpr auto kLoops = kernel_mean::loops_of_kernels<kernel_mean::Forward>();
  return kLoops[static_cast<size_t>(name)];
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(mean_loops_for);
const MeanLoops& mean_loops(choice::KernelName kernel) {
  return HWY_DYNAMIC_DISPATCH(mean_loops_for)(kernel);
}
}  // namespace fovea::engine
#endif
