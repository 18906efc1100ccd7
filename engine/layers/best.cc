#include "engine/layers/best.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/layers/best.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/math-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace best {

namespace hn = hwy::HWY_NAMESPACE;

// The k best so far, in order; equal values keep the order in which they came.
class Kept {
 public:
  Kept(size_t k, float* values, int64_t* places) : k_(k), values_(values), places_(places) {
    for (size_t i = 0; i < k; ++i) {
      values[i] = -std::numeric_limits<float>::infinity();
      places[i] = -1;
    }
  }
  float least() const { return values_[k_ - 1]; }
  void offer(float value, size_t place) {
    if (!(value > least())) return;
    size_t i = k_ - 1;
    for (; i > 0 && values_[i - 1] < value; --i) {
      values_[i] = values_[i - 1];
      places_[i] = places_[i - 1];
    }
    values_[i] = value;
    places_[i] = static_cast<int64_t>(place);
  }

 private:
  size_t k_;
  float* values_;
  int64_t* places_;
};

// A vector is looked into only where one of its lanes is larger than the least kept: k log(n / k)
// times in a row in random order.
double best_of_row(const float* HWY_RESTRICT x, size_t n, size_t k, float* values,
                   int64_t* places) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  Kept kept(k, values, places);
  size_t c = 0;
  for (; c + lanes <= n; c += lanes) {
    if (hn::AllFalse(d, hn::Gt(hn::LoadU(d, x + c), hn::Set(d, kept.least())))) continue;
    for (size_t i = c; i < c + lanes; ++i) kept.offer(x[i], i);
  }
  for (; c < n; ++c) kept.offer(x[c], c);
  const float top = places[0] < 0 ? 0.0f : values[0];
  const auto base = hn::Set(d, top);
  auto sum = hn::Zero(d), other = hn::Zero(d);
  for (c = 0; c + 2 * lanes <= n; c += 2 * lanes) {
    sum = hn::Add(sum, exp_bounded(d, hn::Sub(hn::LoadU(d, x + c), base)));
    other = hn::Add(other, exp_bounded(d, hn::Sub(hn::LoadU(d, x + c + lanes), base)));
  }
  double total = static_cast<double>(sum_of_lanes(d, hn::Add(sum, other)));
  for (; c < n; ++c) total += std::exp(static_cast<double>(x[c]) - static_cast<double>(top));
  return static_cast<double>(top) + std::log(total);
}

}  // namespace best

double best_of_row_f32(const float* x, size_t n, size_t k, float* values, int64_t* places) {
  return best::best_of_row(x, n, k, values, places);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(best_of_row_f32);
double best_of_row(const float* x, size_t n, size_t k, float* values, int64_t* places) {
  return HWY_DYNAMIC_DISPATCH(best_of_row_f32)(x, n, k, values, places);
}
}  // namespace fovea::engine
#endif
