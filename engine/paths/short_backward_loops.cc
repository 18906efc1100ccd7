#include <algorithm>
#include <limits>

#include "engine/call/view.h"
#include "engine/paths/short_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/paths/short_backward_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/paths/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace short_gradient_rows {

namespace hn = hwy::HWY_NAMESPACE;
using namespace rows;

// p = e^(scale p - largest) inverse for p[0 .. n), 0 at a key that -infinity masks; past n, up to a
// whole vector, 0.
template <class T>
HWY_INLINE void weights_again(T scale, T largest, T inverse, size_t n, T* HWY_RESTRICT p) {
  const hn::ScalableTag<T> d;
  const auto masked = hn::Set(d, -std::numeric_limits<T>::infinity());
  for (size_t c = 0; c < n; c += hn::Lanes(d)) {
    const auto x = hn::Mul(hn::Set(d, scale), load_sums(d, p + c));
    const auto w = hn::Mul(weight_of(d, hn::Sub(x, hn::Set(d, largest))), hn::Set(d, inverse));
    const auto seen = hn::And(hn::FirstN(d, n - c), hn::Not(hn::Eq(x, masked)));
    hn::StoreU(hn::IfThenElseZero(seen, w), d, p + c);
  }
}

// Numbers of each pair of a head, and the rows that see a key. The ranges of keys only move forward,
// so these rows are consecutive.
template <class T>
struct Pairs {
  HWY_ALIGN T p[kShortPairs];
  HWY_ALIGN T ds[kShortPairs];
  uint32_t first_row[kShortKeys], end_row[kShortKeys];
};

// Rows of a head: p, and ds = p (dO.v - dO.o + d lse); dq = scale sum ds k.
template <class S, class T>
void rows_of_head(const ShortGradients<T>& g, size_t head, const S* key, const S* value,
                  size_t stride, Pairs<T>* pairs) {
  const ShortHeads<T>& x = g.forward;
  HWY_ALIGN T q[kShortWidth], d_out[kShortWidth], out[kShortWidth], whole[kTogether];
  const auto h = static_cast<int64_t>(head);
  for (size_t j = 0; j < g.keys; ++j) pairs->first_row[j] = pairs->end_row[j] = 0;
  for (size_t r = 0; r < x.rows; ++r) {
    const auto row = static_cast<int64_t>(r), first = static_cast<int64_t>(x.begin[r]);
    const size_t n = x.end[r] - x.begin[r];
    const T* stats = x.statistics + h * x.statistics_head + row * x.statistics_row;
    S* dq =
        g.d_query ? static_cast<S*>(g.d_query) + h * g.d_query_head + row * g.d_query_row : nullptr;
    T* p = pairs->p + r * stride;
    T* ds = pairs->ds + r * stride;
    if (n > 0 && stats[1] != 0) {
      const S* keys = key + first * x.key.row;
      const S* values = value + first * x.value.row;
      const auto load = [](const void* rows, int64_t at, size_t width, T* to) HWY_ATTR {
        load_parted_row(static_cast<const S*>(rows) + at, width, to);
      };
      load(x.query.data, h * x.query.head + row * x.query.row, x.width, q);
      load(g.d_output.data, h * g.d_output.head + row * g.d_output.row, x.value_width, d_out);
      load(x.output, h * x.output_head + row * x.output_row, x.value_width, out);
      // A sum other than 1 is that of a longer row, of which only this key is here.
      if (n == 1 && stats[1] == 1) {
        p[0] = 1;
      } else {
        scores_of(q, keys, x.key.row, x.width, n, p);
        weights_again(x.scale, stats[0], stats[1], n, p);
      }
      scores_of(d_out, values, x.value.row, x.value_width, n, ds);
      // dO.o as dO.v is summed: with one key both are the same number, and its gradient is 0.
      scores_of(d_out, out, 0, x.value_width, 1, whole);
      const T term = whole[0] - (g.d_lse ? g.d_lse[h * g.d_lse_head + row * g.d_lse_row] : T(0));
      for (size_t j = 0; j < n; ++j) ds[j] = p[j] * (ds[j] - term);
      if (dq) sum_values<1>(Sums<T, S>{ds, 0, dq, 0, x.scale}, Lined(keys, x.key.row), n, x.width);
    } else {
      // Nothing seen, or all of it masked: no part in any gradient.
      std::fill_n(p, n, T(0));
      std::fill_n(ds, n, T(0));
      if (dq) std::fill_n(dq, x.width, to_stored<S>(T(0)));
    }
    for (size_t j = x.begin[r]; j < x.end[r]; ++j) {
      if (pairs->end_row[j] == 0) pairs->first_row[j] = static_cast<uint32_t>(r);
      pairs->end_row[j] = static_cast<uint32_t>(r + 1);
    }
  }
}

// sum[0 .. width) += factor * sum over the rows that see key j of pair[r][j] row[r].
template <class S, class T>
HWY_INLINE void add_rows(const ShortHeads<T>& x, const Pairs<T>& pairs, const T* of_pairs,
                         size_t stride, size_t j, const S* rows, int64_t row_stride, T factor,
                         size_t width, T* HWY_RESTRICT sum) {
  const size_t first = pairs.first_row[j], n = pairs.end_row[j] - first;
  HWY_ALIGN T weights[kShortRows], part[kShortWidth];
  for (size_t r = 0; r < n; ++r)
    weights[r] = of_pairs[(first + r) * stride + j - x.begin[first + r]];
  sum_values<1>(Sums<T, T>{weights, 0, part, 0, factor},
                Lined(rows + static_cast<int64_t>(first) * row_stride, row_stride), n, width);
  for (size_t e = 0; e < width; ++e) sum[e] += part[e];
}

// dk += scale ds q; dv += p dO.
template <class S, class T>
void run(const ShortGradients<T>& g, size_t key_head) {
  const ShortHeads<T>& x = g.forward;
  const S* key = static_cast<const S*>(x.key.data) + static_cast<int64_t>(key_head) * x.key.head;
  const S* value =
      static_cast<const S*>(x.value.data) + static_cast<int64_t>(key_head) * x.value.head;
  const size_t stride = short_stride(g.keys);
  Pairs<T> pairs;
  std::fill_n(g.d_key, g.keys * x.width, T(0));
  std::fill_n(g.d_value, g.keys * x.value_width, T(0));
  for (size_t h = key_head * x.group; h < (key_head + 1) * x.group; ++h) {
    rows_of_head<S>(g, h, key, value, stride, &pairs);
    const auto head = static_cast<int64_t>(h);
    const S* query = static_cast<const S*>(x.query.data) + head * x.query.head;
    const S* d_out = static_cast<const S*>(g.d_output.data) + head * g.d_output.head;
    for (size_t j = 0; j < g.keys; ++j) {
      if (pairs.end_row[j] == 0) continue;
      add_rows(x, pairs, pairs.ds, stride, j, query, x.query.row, x.scale, x.width,
               g.d_key + j * x.width);
      add_rows(x, pairs, pairs.p, stride, j, d_out, g.d_output.row, T(1), x.value_width,
               g.d_value + j * x.value_width);
    }
  }
}

}  // namespace short_gradient_rows

void short_gradients_f32(const ShortGradients<float>& g, size_t key_head) {
  short_gradient_rows::run<float>(g, key_head);
}
void short_gradients_bf16(const ShortGradients<float>& g, size_t key_head) {
  short_gradient_rows::run<hwy::bfloat16_t>(g, key_head);
}
void short_gradients_f16(const ShortGradients<float>& g, size_t key_head) {
  short_gradient_rows::run<hwy::float16_t>(g, key_head);
}
void short_gradients_f64(const ShortGradients<double>& g, size_t key_head) {
  short_gradient_rows::run<double>(g, key_head);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(short_gradients_f32);
HWY_EXPORT(short_gradients_bf16);
HWY_EXPORT(short_gradients_f16);
HWY_EXPORT(short_gradients_f64);

template <>
void short_gradients<float>(DType stored, const ShortGradients<float>& g, size_t key_head) {
  if (stored == DType::kBFloat16) return HWY_DYNAMIC_DISPATCH(short_gradients_bf16)(g, key_head);
  if (stored == DType::kFloat16) return HWY_DYNAMIC_DISPATCH(short_gradients_f16)(g, key_head);
  HWY_DYNAMIC_DISPATCH(short_gradients_f32)(g, key_head);
}
template <>
void short_gradients<double>(DType, const ShortGradients<double>& g, size_t key_head) {
  HWY_DYNAMIC_DISPATCH(short_gradients_f64)(g, key_head);
}
}  // namespace fovea::engine
#endif
