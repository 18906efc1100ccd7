// The loops of kernel means: lanes over keys, four queries at a time, weights never stored.
// kernel.cc has the equations.
#include "engine/kernel_mean.h"

#include "engine/simd/subnormals.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernel_mean_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/scores/kernel_functions-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace kernel_mean {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t N = HWY_LANES(float);
constexpr size_t kWidth = kMeanWidth, kQueries = 4;

// A pair's z = u^2, as |q - k|^2 and b^2: some kernels take the factor for nothing.
struct Distance {
  V square, scale;
  HWY_INLINE V z() const { return hn::Mul(square, scale); }
};

// K itself, and K'(u) / u.
template <template <class> class Kernel>
struct ByValue {
  static constexpr bool kScaled = requires(V x) {
    Kernel<D>::scaled_value(D(), x, x), Kernel<D>::slope_of_value(x);
  };
  static HWY_INLINE V weight(const Distance& x, V) {
    if constexpr (kScaled)
      return Kernel<D>::scaled_value(D(), x.square, x.scale);
    else
      return Kernel<D>::value(D(), x.z());
  }
  static HWY_INLINE V slope(const Distance& x, V weight) {
    if constexpr (kScaled)
      return Kernel<D>::slope_of_value(weight);
    else
      return Kernel<D>::slope(D(), x.z());
  }
};
// exp(log K - base), and that times (log K)'(u) / u.
template <template <class> class Kernel>
struct ByLog {
  static HWY_INLINE V weight(const Distance& x, V base) {
    return exp_bounded(D(), hn::Sub(Kernel<D>::log_value(D(), x.z()), base));
  }
  static HWY_INLINE V slope(const Distance& x, V weight) {
    return hn::Mul(weight, Kernel<D>::log_slope(D(), x.z()));
  }
};

template <class Weight>
struct Loops {
  static size_t stride(const MeanBlock& m) { return (kWidth + m.values) * N; }

  // q - k goes to t.
  static HWY_INLINE Distance distance(const float* q, const V* key, V* t) {
    const D d;
    V sum = hn::Zero(d);
#pragma GCC unroll 4
    for (size_t e = 0; e < kWidth; ++e) {
      t[e] = hn::Sub(hn::Set(d, q[e]), key[e]);
      sum = e == 0 ? hn::Mul(t[e], t[e]) : hn::MulAdd(t[e], t[e], sum);
    }
    return {sum, hn::Set(d, q[kWidth] * q[kWidth])};
  }
  static HWY_INLINE V base_of(const MeanBlock& m, size_t row) {
    return m.base ? hn::Set(D(), m.base[row]) : hn::Zero(D());
  }

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

  // With c = (dA - row term) slope b^2 / sum: dq += c (q - k), dk -= c (q - k), dv += weight g.
  template <size_t kRows>
  static HWY_INLINE void backward_rows(const MeanBlock& m, size_t row, size_t begin, size_t end) {
    const D d;
    V dq[kRows][kWidth], dz[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      dz[r] = hn::Zero(d);
#pragma GCC unroll 4
      for (size_t e = 0; e < kWidth; ++e) dq[r][e] = hn::Zero(d);
    }
    const float* HWY_RESTRICT q = m.query + row * (kWidth + 1);
    for (size_t g = begin; g < end; ++g) {
      const float* HWY_RESTRICT panel = m.panel + g * stride(m);
      float* HWY_RESTRICT dx = m.d_panel + g * stride(m);
      V key[kWidth], dk[kWidth];
#pragma GCC unroll 4
      for (size_t e = 0; e < kWidth; ++e) {
        key[e] = hn::Load(d, panel + e * N);
        dk[e] = hn::Load(d, dx + e * N);
      }
      const V v = hn::Load(d, panel + kWidth * N);
      V dv = hn::Load(d, dx + kWidth * N);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        const float* HWY_RESTRICT record = m.record + (row + r) * mean_record(m.values);
        V t[kWidth];
        const Distance x = distance(q + r * (kWidth + 1), key, t);
        V w = Weight::weight(x, base_of(m, row + r));
        if constexpr (kRows == 1) w = hn::IfThenElseZero(hn::FirstN(d, m.keys - g * N), w);
        V slope = Weight::slope(x, w);
        if constexpr (kRows == 1) slope = hn::IfThenElseZero(hn::FirstN(d, m.keys - g * N), slope);
        V gain = hn::MulSub(v, hn::Set(d, record[1]), hn::Set(d, record[0]));
        dv = hn::MulAdd(w, hn::Set(d, record[1 + m.values]), dv);
        for (size_t c = 1; c < m.values; ++c) {
          float* to = dx + (kWidth + c) * N;
          gain = hn::MulAdd(hn::Load(d, panel + (kWidth + c) * N), hn::Set(d, record[1 + c]), gain);
          hn::Store(hn::MulAdd(w, hn::Set(d, record[1 + m.values + c]), hn::Load(d, to)), d, to);
        }
        const V coefficient = hn::Mul(gain, slope);
        dz[r] = hn::MulAdd(coefficient, x.square, dz[r]);
#pragma GCC unroll 4
        for (size_t e = 0; e < kWidth; ++e) {
          dq[r][e] = hn::MulAdd(coefficient, t[e], dq[r][e]);
          dk[e] = hn::NegMulAdd(coefficient, t[e], dk[e]);
        }
      }
#pragma GCC unroll 4
      for (size_t e = 0; e < kWidth; ++e) hn::Store(dk[e], d, dx + e * N);
      hn::Store(dv, d, dx + kWidth * N);
    }
    for (size_t r = 0; r < kRows; ++r) {
      float* to = m.d_query + (row + r) * (kWidth + 1);
      for (size_t e = 0; e < kWidth; ++e) to[e] += sum_of_lanes(d, dq[r][e]);
      const float b = q[r * (kWidth + 1) + kWidth];
      to[kWidth] += b * b * sum_of_lanes(d, dz[r]);
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
  static void backward(const MeanBlock& m) {
    const FlushSubnormals flush;  // products with a far key's weight
    const size_t whole = m.keys / N, all = (m.keys + N - 1) / N;
    size_t row = 0;
    for (; row + kQueries <= m.rows; row += kQueries) {
      backward_rows<kQueries>(m, row, 0, whole);
      for (size_t r = row; r < row + kQueries && whole < all; ++r)
        backward_rows<1>(m, r, whole, all);
    }
    for (; row < m.rows; ++row) backward_rows<1>(m, row, 0, all);
  }
  // Row after row: for few of them.
  static void forward_each(const MeanBlock& m) {
    for (size_t row = 0; row < m.rows; ++row) forward_rows<1>(m, row, 0, (m.keys + N - 1) / N);
  }
  static void backward_each(const MeanBlock& m) {
    for (size_t row = 0; row < m.rows; ++row) backward_rows<1>(m, row, 0, (m.keys + N - 1) / N);
  }
};

template <template <class> class Kernel>
void nearest(const MeanBlock& m, float* base) {
  const D d;
  for (size_t row = 0; row < m.rows; ++row) {
    V least = hn::Inf(d);
    for (size_t g = 0; g * N < m.keys; ++g) {
      V key[kWidth], t[kWidth];
      for (size_t e = 0; e < kWidth; ++e)
        key[e] = hn::Load(d, m.panel + g * (kWidth + m.values) * N + e * N);
      const V z = Loops<ByLog<Kernel>>::distance(m.query + row * (kWidth + 1), key, t).z();
      least = hn::Min(least, hn::IfThenElse(hn::FirstN(d, m.keys - g * N), z, hn::Inf(d)));
    }
    const V log = Kernel<D>::log_value(d, hn::MinOfLanes(d, least));
    base[row] = HWY_MAX(base[row], hn::GetLane(log));
  }
}

template <template <class> class Kernel>
constexpr MeanLoops by_value() {
  using Value = Loops<ByValue<Kernel>>;
  return {N, Value::forward, Value::backward, nullptr, nullptr, nullptr};
}
// Positive everywhere.
template <template <class> class Kernel>
constexpr MeanLoops with_log() {
  using Value = Loops<ByValue<Kernel>>;
  using Log = Loops<ByLog<Kernel>>;
  return {
      N, Value::forward, Value::backward, Log::forward_each, Log::backward_each, nearest<Kernel>};
}

}  // namespace kernel_mean

const MeanLoops& mean_loops_for(choice::KernelName name) {
  using namespace kernel;
  using namespace kernel_mean;
  // In the order of KernelName.
  static constexpr MeanLoops kLoops[] = {
      with_log<Gaussian>(),     with_log<Laplace>(), with_log<Logistic>(),  with_log<Sigmoid>(),
      by_value<Silverman>(),    with_log<Cauchy>(),  by_value<Box>(),       by_value<Triangular>(),
      by_value<Epanechnikov>(), by_value<Quartic>(), by_value<Triweight>(), by_value<Tricube>(),
      by_value<Cosine>()};
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
