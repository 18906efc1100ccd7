#include "engine/paths/short_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/call/view.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/paths/short_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/paths/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace short_rows {

namespace hn = hwy::HWY_NAMESPACE;
using namespace rows;

// A row's results where it saw nothing (sum 0) or something spoiled.
template <class S, class T>
void fill_row(const ShortHeads<T>& x, T value, S* out) {
  for (size_t e = 0; e < x.value_width; ++e) out[e] = to_stored<S>(value);
}

template <class S, class T>
ShortOutcome run(const ShortHeads<T>& x, size_t from, size_t to) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity(),
              kNaN = std::numeric_limits<T>::quiet_NaN();
  ShortOutcome outcome;
  HWY_ALIGN T s[kShortKeys + 2 * HWY_LANES(T)];
  HWY_ALIGN T converted[std::is_same_v<S, T> ? 1 : kShortWidth];
  for (size_t h = from; h < to; ++h) {
    const auto head = static_cast<int64_t>(h), key_head = static_cast<int64_t>(h / x.group);
    const S* query = static_cast<const S*>(x.query.data) + head * x.query.head;
    const S* key = static_cast<const S*>(x.key.data) + key_head * x.key.head;
    const S* value = static_cast<const S*>(x.value.data) + key_head * x.value.head;
    S* out = static_cast<S*>(x.output) + head * x.output_head;
    for (size_t i = 0; i < x.rows; ++i, query += x.query.row, out += x.output_row) {
      const auto first = static_cast<int64_t>(x.begin[i]);
      const size_t n = x.end[i] - x.begin[i];
      const T* q;
      if constexpr (std::is_same_v<S, T>) {
        q = query;
      } else {
        load_parted_row(query, x.width, converted);
        q = converted;
      }
      T largest = -kInfinity, sum = 0;
      const S* keys = key + first * x.key.row;
      const S* values = value + first * x.value.row;
      if (n == 1) {
        weigh_one(q, keys, x.width, x.scale, &largest, &sum);
      } else if (n > 1) {
        scores_of(q, keys, x.key.row, x.width, n, s);
        weigh(x.scale, n, s, &largest, &sum);
      }
      const bool spoiled = !(sum < kInfinity) || largest == kInfinity;
      if (HWY_UNLIKELY(sum == 0 || spoiled)) {
        fill_row<S, T>(x, spoiled ? kNaN : T(0), out);
        if (spoiled)
          outcome.spoiled = std::min(outcome.spoiled, h * x.rows + i);
        else
          ++outcome.empty;
        largest = spoiled ? kNaN : T(0);
        sum = spoiled ? kNaN : T(0);
      } else if (n == 1) {
        copy_row(values, x.value_width, out);
      } else {
        sum_values<1>(Sums<T, S>{s, 0, out, 0, 1 / sum}, Lined(values, x.value.row), n,
                      x.value_width);
      }
      const auto row = static_cast<int64_t>(i);
      if (x.statistics) {
        T* stats = x.statistics + head * x.statistics_head + row * x.statistics_row;
        stats[0] = largest;
        stats[1] = sum == 0 ? T(0) : 1 / sum;
        stats[2] = stats[3] = 0;
      }
      if (x.lse)
        x.lse[head * x.lse_head + row * x.lse_row] =
            sum == 0 ? -kInfinity : largest + std::log(sum);
    }
  }
  return outcome;
}

}  // namespace short_rows

ShortOutcome short_f32(const ShortHeads<float>& x, size_t from, size_t to) {
  return short_rows::run<float>(x, from, to);
}
ShortOutcome short_bf16(const ShortHeads<float>& x, size_t from, size_t to) {
  return short_rows::run<hwy::bfloat16_t>(x, from, to);
}
ShortOutcome short_f16(const ShortHeads<float>& x, size_t from, size_t to) {
  return short_rows::run<hwy::float16_t>(x, from, to);
}
ShortOutcome short_f64(const ShortHeads<double>& x, size_t from, size_t to) {
  return short_rows::run<double>(x, from, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(short_f32);
HWY_EXPORT(short_bf16);
HWY_EXPORT(short_f16);
HWY_EXPORT(short_f64);

template <>
ShortOutcome short_heads<float>(DType stored, const ShortHeads<float>& heads, size_t from,
                                size_t to) {
  if (stored == DType::kBFloat16) return HWY_DYNAMIC_DISPATCH(short_bf16)(heads, from, to);
  if (stored == DType::kFloat16) return HWY_DYNAMIC_DISPATCH(short_f16)(heads, from, to);
  return HWY_DYNAMIC_DISPATCH(short_f32)(heads, from, to);
}
template <>
ShortOutcome short_heads<double>(DType, const ShortHeads<double>& heads, size_t from, size_t to) {
  return HWY_DYNAMIC_DISPATCH(short_f64)(heads, from, to);
}
}  // namespace fovea::engine
#endif
