// The loops of kernel means, backward: lanes over keys, four queries at a time; a block of keys
// keeps its gradients in the first-level cache.
#include "engine/paths/kernel_mean.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/paths/kernel_mean_backward_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/scores/mean_weights-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace kernel_mean {

template <class Weight>
struct MeanGradients {
  struct Pair {
    V t[kWidth], square, started;
    Pair() = default;
    HWY_INLINE Pair(const V* query, const V* key, V base) {
      differences(query, key, t);
      square = square_of(t);
      started = Weight::start_both({square, query[kWidth]}, base);
    }
  };

  // With c = (dA - row term) fall b^2 / sum: dq -= c (q - k), dk += c (q - k), dv += weight g.
  template <size_t kRows>
  static HWY_INLINE void rows(const MeanBlock& m, size_t row, size_t begin, size_t end) {
    const D d;
    V dq[kRows][kWidth], dz[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      dz[r] = hn::Zero(d);
#pragma GCC unroll 4
      for (size_t e = 0; e < kWidth; ++e) dq[r][e] = hn::Zero(d);
    }
    const float* HWY_RESTRICT q = m.query + row * kMeanQuery;
    V query[kRows][kMeanQuery];
    for (size_t r = 0; r < kRows; ++r) spread<Weight>(q + r * kMeanQuery, query[r]);
    Pair ahead[2][kRows];  // of this vector of keys and of the next, in turns
    const auto pair_of = [&](size_t g, size_t r) HWY_ATTR {
      V key[kWidth];
      load_key(m, g, key);
      return Pair(query[r], key, base_of(m, row + r));
    };
    const auto start_ahead = [&](size_t g) HWY_ATTR {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) ahead[g % 2][r] = pair_of(std::min(g, end - 1), r);
    };
    if (Weight::kAhead && begin < end) start_ahead(begin);
    for (size_t g = begin; g < end; ++g) {
      const float* HWY_RESTRICT panel = m.panel + g * stride(m);
      float* HWY_RESTRICT dx = m.d_panel + g * stride(m);
      V dk[kWidth];
#pragma GCC unroll 4
      for (size_t e = 0; e < kWidth; ++e) dk[e] = hn::Load(d, dx + e * N);
      if constexpr (Weight::kAhead) start_ahead(g + 1);
      const V v = hn::Load(d, panel + kWidth * N);
      V dv = hn::Load(d, dx + kWidth * N);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        const float* HWY_RESTRICT record = m.record + (row + r) * mean_record(m.values);
        const Pair pair = Weight::kAhead ? ahead[g % 2][r] : pair_of(g, r);
        auto [w, fall] = Weight::both({pair.square, query[r][kWidth]}, pair.started);
        if constexpr (kRows == 1) {
          w = hn::IfThenElseZero(hn::FirstN(d, m.keys - g * N), w);
          fall = hn::IfThenElseZero(hn::FirstN(d, m.keys - g * N), fall);
        }
        V gain = hn::MulSub(v, hn::Set(d, record[1]), hn::Set(d, record[0]));
        dv = hn::MulAdd(w, hn::Set(d, record[1 + m.values]), dv);
        for (size_t c = 1; c < m.values; ++c) {
          float* to = dx + (kWidth + c) * N;
          gain = hn::MulAdd(hn::Load(d, panel + (kWidth + c) * N), hn::Set(d, record[1 + c]), gain);
          hn::Store(hn::MulAdd(w, hn::Set(d, record[1 + m.values + c]), hn::Load(d, to)), d, to);
        }
        const V coefficient = hn::Mul(gain, fall);
        dz[r] = hn::NegMulAdd(coefficient, pair.square, dz[r]);
#pragma GCC unroll 4
        for (size_t e = 0; e < kWidth; ++e) {
          dq[r][e] = hn::NegMulAdd(coefficient, pair.t[e], dq[r][e]);
          dk[e] = hn::MulAdd(coefficient, pair.t[e], dk[e]);
        }
      }
#pragma GCC unroll 4
      for (size_t e = 0; e < kWidth; ++e) hn::Store(dk[e], d, dx + e * N);
      hn::Store(dv, d, dx + kWidth * N);
    }
    for (size_t r = 0; r < kRows; ++r) {
      float* to = m.d_query + (row + r) * kMeanQuery;
      for (size_t e = 0; e < kWidth; ++e) to[e] += sum_of_lanes(d, dq[r][e]);
      const float b = q[r * kMeanQuery + kWidth];
      to[kWidth] += b * b * sum_of_lanes(d, dz[r]);
    }
  }
};

template <template <class> class Kernel>
struct Backward {
  static constexpr MeanBackwardLoops loops() {
    using Value = MeanGradients<ByValue<Kernel>>;
    if constexpr (Positive<Kernel>)
      return {all_rows<Value>, each_row<MeanGradients<ByLog<Kernel>>>};
    else
      return {all_rows<Value>, nullptr};
  }
};

}  // namespace kernel_mean

const MeanBackwardLoops& mean_backward_loops_for(choice::KernelName name) {
  static constexpr auto kLoops = kernel_mean::loops_of_kernels<kernel_mean::Backward>();
  return kLoops[static_cast<size_t>(name)];
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(mean_backward_loops_for);
const MeanBackwardLoops& mean_backward_loops(choice::KernelName kernel) {
  return HWY_DYNAMIC_DISPATCH(mean_backward_loops_for)(kernel);
}
}  // namespace fovea::engine
#endif
