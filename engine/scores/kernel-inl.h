// The loops of kernel scores: a kernel's faces on rows, distances of four queries to all keys of a
// tile, and the sums of weighted differences that are the gradients. kernel.cc has the equations.
#if defined(FOVEA_ENGINE_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_KERNEL_INL_H_
#undef FOVEA_ENGINE_KERNEL_INL_H_
#else
#define FOVEA_ENGINE_KERNEL_INL_H_
#endif

#include "engine/scores/kernel_functions-inl.h"
#include "engine/simd/reduce-inl.h"
#include "engine/stage.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace kernel {

// One kernel and face, on runs of whole vectors.
template <class T>
struct Functions {
  void (*value)(T* z_to_score, size_t n);
  // de: gradients in, de * slope(z) * factor out; returns the sum of what it wrote times z.
  T (*coefficients)(const T* z, T* de, size_t n, T factor);
};

template <class T, template <class> class Kernel, Face kFace>
struct Rows {
  static void value(T* row, size_t n) {
    const hn::ScalableTag<T> d;
    for (size_t c = 0; c < n; c += hn::Lanes(d)) {
      const auto z = hn::LoadU(d, row + c);
      if constexpr (kFace == Face::kLog)
        hn::StoreU(Kernel<decltype(d)>::log_value(d, z), d, row + c);
      else
        hn::StoreU(Kernel<decltype(d)>::value(d, z), d, row + c);
    }
  }
  static T coefficients(const T* z_row, T* de, size_t n, T factor) {
    const hn::ScalableTag<T> d;
    auto sum = hn::Zero(d);
    for (size_t c = 0; c < n; c += hn::Lanes(d)) {
      const auto z = not_infinite(d, hn::LoadU(d, z_row + c)), g = hn::LoadU(d, de + c);
      hn::Vec<decltype(d)> slope;
      if constexpr (kFace == Face::kLog)
        slope = Kernel<decltype(d)>::log_slope(d, z);
      else
        slope = Kernel<decltype(d)>::slope(d, z);
      // A pair that does not count has de = 0 and may have any operands.
      const auto counts = hn::Ne(g, hn::Zero(d));
      const auto x = hn::IfThenElseZero(counts, hn::Mul(hn::Mul(g, slope), hn::Set(d, factor)));
      hn::StoreU(x, d, de + c);
      sum = hn::MulAdd(x, hn::IfThenElseZero(counts, z), sum);
    }
    return sum_of_lanes(d, sum);
  }
};

// The same for log K of the Gaussian, -z / 2 + kLogGaussian, whose slope is -1 whatever the
// distance: z comes back from the score. Returns 0 where `score` is null, because no bandwidth needs
// the sum.
template <class T>
inline constexpr T kLogGaussian = T(-0.91893853320467274178);

template <class T>
T linear_coefficients(const T* score, T* de, size_t n, T factor) {
  const hn::ScalableTag<T> d;
  auto sum = hn::Zero(d);
  for (size_t c = 0; c < n; c += hn::Lanes(d)) {
    const auto g = hn::LoadU(d, de + c);
    const auto x = hn::Mul(g, hn::Set(d, -factor));
    hn::StoreU(x, d, de + c);
    if (!score) continue;
    const auto half = hn::Sub(hn::Set(d, kLogGaussian<T>), hn::LoadU(d, score + c));
    sum = hn::MulAdd(x, hn::IfThenElseZero(hn::Ne(g, hn::Zero(d)), hn::Add(half, half)), sum);
  }
  return sum_of_lanes(d, sum);
}

template <class T, template <class> class Kernel>
Functions<T> both(Face face) {
  if (face == Face::kLog)
    return {Rows<T, Kernel, Face::kLog>::value, Rows<T, Kernel, Face::kLog>::coefficients};
  return {Rows<T, Kernel, Face::kValue>::value, Rows<T, Kernel, Face::kValue>::coefficients};
}

template <class T>
Functions<T> functions(choice::KernelName name, Face face) {
  using enum choice::KernelName;
  switch (name) {
    case kGaussian:
      return both<T, Gaussian>(face);
    case kLaplace:
      return both<T, Laplace>(face);
    case kLogistic:
      return both<T, Logistic>(face);
    case kSigmoid:
      return both<T, Sigmoid>(face);
    case kSilverman:
      return both<T, Silverman>(face);
    case kCauchy:
      return both<T, Cauchy>(face);
    case kBox:
      return both<T, Box>(face);
    case kTriangular:
      return both<T, Triangular>(face);
    case kEpanechnikov:
      return both<T, Epanechnikov>(face);
    case kQuartic:
      return both<T, Quartic>(face);
    case kTriweight:
      return both<T, Triweight>(face);
    case kTricube:
      return both<T, Tricube>(face);
    case kCosine:
      break;
  }
  return both<T, Cosine>(face);
}

// out[r][g] = offset + factor[r] * |q_r - k|^2 for kQueries rows and the keys of groups [begin,
// end), one vector each, packed as [group][width][lanes].
template <class T>
struct Distances {
  const T* q;
  size_t q_stride;
  const T* groups;
  size_t width, begin, end;
  T factor[4];
  T offset;
  T* out;
  size_t out_stride;
};

template <class T, size_t kQueries>
HWY_INLINE void distances(const Distances<T>& m) {
  const hn::ScalableTag<T> d;
  constexpr size_t N = HWY_LANES(T);
  for (size_t g = m.begin; g < m.end; ++g) {
    const T* HWY_RESTRICT x = m.groups + g * m.width * N;
    hn::Vec<decltype(d)> sum[kQueries];
#pragma GCC unroll 4
    for (size_t r = 0; r < kQueries; ++r) sum[r] = hn::Zero(d);
    for (size_t e = 0; e < m.width; ++e) {
      const auto key = hn::LoadU(d, x + e * N);
#pragma GCC unroll 4
      for (size_t r = 0; r < kQueries; ++r) {
        const auto t = hn::Sub(key, hn::Set(d, m.q[r * m.q_stride + e]));
        sum[r] = hn::MulAdd(t, t, sum[r]);
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kQueries; ++r) {
      hn::StoreU(hn::MulAdd(sum[r], hn::Set(d, m.factor[r]), hn::Set(d, m.offset)), d,
                 m.out + r * m.out_stride + g * N);
    }
  }
}

// dq[r][e] += sum_j c_rj (q - k)_e, dk[e][j] -= sum_r c_rj (q - k)_e for kWidth features from
// `feature` on.
template <class T>
struct Strip {
  const T* q;
  size_t q_stride;
  const T* groups;
  size_t width, feature, begin, end;
  const T* c;
  size_t c_stride;
  T* dq;  // [queries][4], stored
  T* dk;  // [groups][4][lanes], added
};

template <class T, size_t kQueries, size_t kWidth, bool kFinite>
HWY_INLINE void accumulate(const Strip<T>& m) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t N = HWY_LANES(T);
  V dq[kQueries][kWidth];
#pragma GCC unroll 4
  for (size_t r = 0; r < kQueries; ++r)
#pragma GCC unroll 4
    for (size_t e = 0; e < kWidth; ++e) dq[r][e] = hn::Zero(d);
  for (size_t g = m.begin; g < m.end; ++g) {
    V dk[kWidth];
#pragma GCC unroll 4
    for (size_t e = 0; e < kWidth; ++e) dk[e] = hn::LoadU(d, m.dk + (g * 4 + e) * N);
#pragma GCC unroll 4
    for (size_t r = 0; r < kQueries; ++r) {
      const V c = hn::LoadU(d, m.c + r * m.c_stride + g * N);
#pragma GCC unroll 4
      for (size_t e = 0; e < kWidth; ++e) {
        const V key = hn::LoadU(d, m.groups + (g * m.width + m.feature + e) * N);
        V t = hn::Sub(hn::Set(d, m.q[r * m.q_stride + m.feature + e]), key);
        if constexpr (!kFinite) t = hn::IfThenElseZero(hn::Ne(c, hn::Zero(d)), t);
        dq[r][e] = hn::MulAdd(c, t, dq[r][e]);
        dk[e] = hn::NegMulAdd(c, t, dk[e]);
      }
    }
#pragma GCC unroll 4
    for (size_t e = 0; e < kWidth; ++e) hn::StoreU(dk[e], d, m.dk + (g * 4 + e) * N);
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kQueries; ++r)
#pragma GCC unroll 4
    for (size_t e = 0; e < kWidth; ++e) m.dq[r * 4 + e] = sum_of_lanes(d, dq[r][e]);
}

template <class T, size_t kQueries, size_t kWidth>
HWY_NOINLINE void accumulate_call(bool finite, const Strip<T>& m) {
  if (finite)
    accumulate<T, kQueries, kWidth, true>(m);
  else
    accumulate<T, kQueries, kWidth, false>(m);
}

template <class T>
void accumulate_any(size_t queries, size_t width, bool finite, const Strip<T>& m) {
  if (queries == 4) {
    switch (width) {
      case 1:
        return accumulate_call<T, 4, 1>(finite, m);
      case 2:
        return accumulate_call<T, 4, 2>(finite, m);
      case 3:
        return accumulate_call<T, 4, 3>(finite, m);
      default:
        return accumulate_call<T, 4, 4>(finite, m);
    }
  }
  switch (width) {
    case 1:
      return accumulate_call<T, 1, 1>(finite, m);
    case 2:
      return accumulate_call<T, 1, 2>(finite, m);
    case 3:
      return accumulate_call<T, 1, 3>(finite, m);
    default:
      return accumulate_call<T, 1, 4>(finite, m);
  }
}

}  // namespace kernel
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
