#include "bench/roofs/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/roofs/kernels.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "engine/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

float fma(size_t rounds) {
  const Tag d;
  Vector sum[kFmaChains];
  for (size_t i = 0; i < kFmaChains; ++i) sum[i] = hn::Set(d, 1e-3f * static_cast<float>(i));
  const Vector factor = hn::Set(d, 0.9999999f), term = hn::Set(d, 1e-7f);
  for (size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kFmaChains; ++i) sum[i] = hn::MulAdd(sum[i], factor, term);
    asm volatile("");  // keeps the rounds apart: the compiler may not fold two into one
  }
  Vector total = sum[0];
  for (size_t i = 1; i < kFmaChains; ++i) total = hn::Add(total, sum[i]);
  return hn::GetLane(hn::SumOfLanes(d, total));
}

// Four vectors in lock step, as the kernels do it: one polynomial alone waits for itself.
template <class Function>
HWY_INLINE float sum_of(Function function, const float* x, size_t n, size_t rounds) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  Vector sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i + 4 * lanes <= n; i += 4 * lanes) {
#pragma GCC unroll 4
      for (size_t v = 0; v < 4; ++v) {
        sum[v] = hn::Add(sum[v], function(d, hn::LoadU(d, x + i + v * lanes)));
      }
    }
    asm volatile("" ::: "memory");
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]))));
}

float exponential(const float* x, size_t n, size_t rounds) {
  return sum_of([](Tag d, Vector v) HWY_ATTR { return engine::HWY_NAMESPACE::exp(d, v); }, x, n,
                rounds);
}

float hyperbolic_tangent(const float* x, size_t n, size_t rounds) {
  return sum_of([](Tag d, Vector v) HWY_ATTR { return engine::HWY_NAMESPACE::tanh(d, v); }, x, n,
                rounds);
}

template <class Put>
HWY_INLINE void triad_with(Put put, float* a, const float* b, const float* c, size_t n) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  const Vector three = hn::Set(d, 3.0f);
  for (size_t i = 0; i + lanes <= n; i += lanes) {
    put(hn::MulAdd(three, hn::Load(d, c + i), hn::Load(d, b + i)), d, a + i);
  }
}

void triad(float* a, const float* b, const float* c, size_t n) {
  triad_with([](Vector v, Tag d, float* p) HWY_ATTR { hn::Store(v, d, p); }, a, b, c, n);
}

void triad_streamed(float* a, const float* b, const float* c, size_t n) {
  triad_with([](Vector v, Tag d, float* p) HWY_ATTR { hn::Stream(v, d, p); }, a, b, c, n);
  hwy::FlushStream();
}

// Rows ahead: eight of 1 KB cover the latency of memory and still fit L1 and L2 together.
constexpr size_t kAhead = 8;

float gather(const float* rows, size_t width, const int32_t* index, size_t n) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  Vector sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  for (size_t i = 0; i < n; ++i) {
    if (i + kAhead < n) {
      const float* next = rows + static_cast<size_t>(index[i + kAhead]) * width;
      for (size_t k = 0; k < width; k += 16) __builtin_prefetch(next + k, 0, 2);
    }
    const float* row = rows + static_cast<size_t>(index[i]) * width;
    for (size_t k = 0; k + 2 * lanes <= width; k += 2 * lanes) {
      sum0 = hn::Add(sum0, hn::LoadU(d, row + k));
      sum1 = hn::Add(sum1, hn::LoadU(d, row + k + lanes));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

const RoofKernels* kernels() {
  static const RoofKernels kernels = {
      hn::Lanes(Tag()), fma, exponential, hyperbolic_tangent, triad, triad_streamed, gather};
  return &kernels;
}

}  // namespace fovea::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::bench {
HWY_EXPORT(kernels);
const RoofKernels& roof_kernels() { return *HWY_DYNAMIC_DISPATCH(kernels)(); }
}  // namespace fovea::bench
#endif
