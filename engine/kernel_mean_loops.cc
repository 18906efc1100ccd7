// The loops of kernel means: lanes over keys, four queries at a time, weights never stored.
// kernel.cc has the equations.
#include "engine/kernel_mean.h"
#include "engine/simd/subnormals.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernel_mean_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/scores/mean_weights-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace kernel_mean {

template <class Weight>
struct Loops {
  // kRows queries from `row` on against groups [begin, end); one query at a time minds the padding
  // of the last group.
  template <size_t kRows>
  static HWY_INLINE void forward_rows(const MeanBlock& m, size_t row, size_t begin, size_t end) {
    const D d;
    V sum[kRows], value[kMeanValues][kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) sum[r] = value[0][r] = hn::Zero(d);
    for (size_t c = 1; c < m.values; ++c)
      for (size_t r = 0; r < kRows; ++r) value[c][r] = hn::Zero(d);
    const float* HWY_RESTRICT q = m.query + row * (kWidth + 1);
    for (size_t g = begin; g < end; ++g) {
      const float* HWY_RESTRICT x = m.panel + g * stride(m);
      V key[kWidth], t[kWidth], w[kRows];
#pragma GCC unroll 4
      for (size_t e = 0; e < kWidth; ++e) key[e] = hn::Load(d, x + e * N);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        w[r] = Weight::weight(distance(q + r * (kWidth + 1), key, t), base_of(m, row + r));
        if constexpr (kRows == 1) w[r] = hn::IfThenElseZero(hn::FirstN(d, m.keys - g * N), w[r]);
        sum[r] = hn::Add(sum[r], w[r]);
      }
      const V first = hn::Load(d, x + kWidth * N);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) value[0][r] = hn::MulAdd(w[r], first, value[0][r]);
      for (size_t c = 1; c < m.values; ++c) {
        const V v = hn::Load(d, x + (kWidth + c) * N);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) value[c][r] = hn::MulAdd(w[r], v, value[c][r]);
      }
    }
    for (size_t r = 0; r < kRows; ++r) {
      float* sums = m.sums + (row + r) * (1 + m.values);
      sums[0] += sum_of_lanes(d, sum[r]);
      for (size_t c = 0; c < m.values; ++c) sums[1 + c] += sum_of_lanes(d, value[c][r]);
    }
  }

  static void forward(const MeanBlock& m) {
    const FlushSubnormals flush;  // products with a far key's weight
    const size_t whole = m.keys / N, all = (m.keys + N - 1) / N;
    size_t row = 0;
    for (; row + kQueries <= m.rows; row += kQueries) {
      forward_rows<kQueries>(m, row, 0, whole);
      for (size_t r = row; r < row + kQueries && whole < all; ++r)
        forward_rows<1>(m, r, whole, all);
    }
    for (; row < m.rows; ++row) forward_rows<1>(m, row, 0, all);
  }
  // Row after row: for few of them.
  static void forward_each(const MeanBlock& m) {
    for (size_t row = 0; row < m.rows; ++row) forward_rows<1>(m, row, 0, (m.keys + N - 1) / N);
  }
};

template <template <class> class Kernel>
void nearest(const MeanBlock& m, float* base) {
  const D d;
  for (size_t row = 0; row < m.rows; ++row) {
    V least = hn::Inf(d);
    for (size_t g = 0; g * N < m.keys; ++g) {
      V key[kWidth], t[kWidth];
      for (size_t e = 0; e < kWidth; ++e) key[e] = hn::Load(d, m.panel + g * stride(m) + e * N);
      const V z = distance(m.query + row * (kWidth + 1), key, t).z();
      least = hn::Min(least, hn::IfThenElse(hn::FirstN(d, m.keys - g * N), z, hn::Inf(d)));
    }
    const V log = Kernel<D>::log_value(d, hn::MinOfLanes(d, least));
    base[row] = HWY_MAX(base[row], hn::GetLane(log));
  }
}

template <template <class> class Kernel>
struct Forward {
  static constexpr MeanLoops loops() {
    using Value = Loops<ByValue<Kernel>>;
    if constexpr (Positive<Kernel>)
      return {N, Value::forward, Loops<ByLog<Kernel>>::forward_each, nearest<Kernel>};
    else
      return {N, Value::forward, nullptr, nullptr};
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
