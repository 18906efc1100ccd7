#include "engine/paths/decode_loops.h"

#include <algorithm>
#include <limits>

#include "engine/simd/subnormals.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/paths/decode_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/paths/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace decode_rows {

namespace hn = hwy::HWY_NAMESPACE;
using namespace rows;

// Rows that meet a key together, which is loaded and converted once for all of them: as many as
// leave their sums in registers.
constexpr size_t kScored = HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM ? 4 : 2;

// Rows that lie in pages: as Lined, with a page's end to stop at.
template <class S>
struct InPages {
  using Stored = S;
  const S* pool;
  int64_t stride, page_stride;
  const int32_t* pages;
  size_t page_rows, first;

  explicit InPages(const DecodeRows& x)
      : pool(static_cast<const S*>(x.data)),
        stride(x.stride),
        page_stride(x.page_stride),
        pages(x.pages),
        page_rows(x.page_rows),
        first(x.first) {}
  HWY_INLINE const S* row(size_t j) const {
    const size_t at = first + j, page = at / page_rows;
    return pool + pages[page] * page_stride + static_cast<int64_t>(at - page * page_rows) * stride;
  }
  HWY_INLINE size_t in_line(size_t j) const { return page_rows - (first + j) % page_rows; }
  InPages from(size_t j) const {
    InPages rest = *this;
    rest.first += j;
    return rest;
  }
};

// Scores of kScored rows and kTogether keys.
template <class S, class T>
HWY_INLINE void block_of_scores(const DecodePart<T>& x, size_t row, const S* key, T* s) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  const T* HWY_RESTRICT q = x.query + row * x.width;
  hn::Vec<decltype(d)> sum[kScored][kTogether];
#pragma GCC unroll 4
  for (size_t r = 0; r < kScored; ++r)
#pragma GCC unroll 4
    for (size_t i = 0; i < kTogether; ++i) sum[r][i] = hn::Zero(d);
  const auto keys = [&](size_t i) { return key + static_cast<int64_t>(i) * x.key.stride; };
  size_t e = 0;
  for (; e + 2 * N <= x.width; e += 2 * N) {
    hn::Vec<decltype(d)> left[kScored], next[kScored];
#pragma GCC unroll 4
    for (size_t r = 0; r < kScored; ++r) {
      left[r] = hn::LoadU(d, q + r * x.width + e);
      next[r] = hn::LoadU(d, q + r * x.width + e + N);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < kTogether; ++i) {
      const auto right = load_two(d, keys(i) + e);
#pragma GCC unroll 4
      for (size_t r = 0; r < kScored; ++r)
        sum[r][i] = hn::MulAdd(next[r], right.b, hn::MulAdd(left[r], right.a, sum[r][i]));
    }
  }
  const auto step = [&](auto load) HWY_ATTR {
    hn::Vec<decltype(d)> left[kScored];
#pragma GCC unroll 4
    for (size_t r = 0; r < kScored; ++r) left[r] = load(q + r * x.width + e);
#pragma GCC unroll 4
    for (size_t i = 0; i < kTogether; ++i) {
      const auto right = load(keys(i) + e);
#pragma GCC unroll 4
      for (size_t r = 0; r < kScored; ++r) sum[r][i] = hn::MulAdd(left[r], right, sum[r][i]);
    }
  };
  if (e + N <= x.width) {
    step([&](auto* p) HWY_ATTR { return load_stored(d, p); });
    e += N;
  }
  if (e < x.width) step([&](auto* p) HWY_ATTR { return load_stored_first(d, p, x.width - e); });
#pragma GCC unroll 4
  for (size_t r = 0; r < kScored; ++r) sum_four(d, sum[r], s + r * kDecodeScores);
}

// Rows of values summed together: each value is loaded once for all of them.
constexpr size_t kSummed = 4;

// The keys of the next part are prefetched. Where rows lie apart, this happens during the scores;
// where row follows row, during the sums of values, which wait less for memory. Each choice takes a
// tenth to a half less time in its case (bench/short_calls, 4,096 keys).
template <class T>
HWY_INLINE bool lie_apart(const DecodePart<T>& x) {
  return x.key.pages || x.key.stride != static_cast<int64_t>(x.width);
}

// Prefetches rows [from, to).
template <class AllRows>
HWY_INLINE void prefetch_part(const AllRows& rows, size_t from, size_t to, size_t width) {
  for (size_t j = from; j < to; ++j) {
    const auto* row = rows.row(j);
    for (size_t e = 0; e < width; e += 64 / sizeof(*row)) __builtin_prefetch(row + e, 0, 2);
  }
}

// Every row's scores of keys [from, to), a few keys at a time: the first row brings them, the others
// find them in the nearest cache.
template <class AllRows, class T>
HWY_INLINE void scores(const DecodePart<T>& x, size_t from, size_t to) {
  const AllRows key(x.key), value(x.value);
  const bool prefetch_here = lie_apart(x);
  for (size_t j = from, n = 0; j < to; j += n) {
    n = std::min({kTogether, to - j, key.in_line(j)});
    if (x.values_ahead) prefetch_part(value, j, j + n, x.value_width);
    const size_t next = kDecodePart + j;
    if (prefetch_here)
      prefetch_part(key, next, std::min(next + n, kDecodePart + x.keys_ahead), x.width);
    const auto* keys = key.row(j);
    T* s = x.scores + (j - from);
    size_t r = 0;
    for (; n == kTogether && r + kScored <= x.rows; r += kScored)
      block_of_scores(x, r, keys, s + r * kDecodeScores);
    for (; r < x.rows; ++r)
      scores_of(x.query + r * x.width, keys, x.key.stride, x.width, n, s + r * kDecodeScores);
  }
}

template <class T>
HWY_INLINE void weigh_row(const DecodePart<T>& x, size_t r, T* state) {
  const size_t n = x.end[r] - x.begin[r];
  state[0] = -std::numeric_limits<T>::infinity();
  state[1] = 0;
  state[2] = n > 0;
  if (n > 0) weigh(T(1), n, x.scores + r * kDecodeScores, &state[0], &state[1]);
}

// Rows that see the same keys, as all do but for a step of several queries.
template <class AllRows, class T>
void run_together(const DecodePart<T>& x) {
  const size_t from = x.begin[0], to = x.end[0], size = kDecodeState + x.value_width;
  const AllRows value = AllRows(x.value).from(from);
  scores<AllRows>(x, from, to);
  for (size_t r = 0; r < x.rows; ++r) weigh_row(x, r, x.states + r * size);
  const AllRows key(x.key);
  const size_t next = kDecodePart + from;
  size_t last = lie_apart(x) ? 0 : kDecodePart + x.keys_ahead;
  const auto next_key = [&](size_t j) HWY_ATTR {
    prefetch_part(key, next + j, std::min(next + j + 1, last), x.width);
  };
  for (size_t r = 0; r < x.rows;) {
    const Sums<T, T> sums{x.scores + r * kDecodeScores, kDecodeScores,
                          x.states + r * size + kDecodeState, size};
    if (r + kSummed <= x.rows) {
      sum_values<kSummed>(sums, value, to - from, x.value_width, next_key);
      r += kSummed;
    } else {
      sum_values<1>(sums, value, to - from, x.value_width, next_key);
      ++r;
    }
    last = 0;  // once for all rows
  }
}

template <class AllRows, class T>
void run_all(const DecodePart<T>& x) {
  const FlushSubnormals flush;
  bool same = true;
  for (size_t r = 1; r < x.rows; ++r)
    same = same && x.begin[r] == x.begin[0] && x.end[r] == x.end[0];
  if (same) return run_together<AllRows>(x);
  const size_t size = kDecodeState + x.value_width;
  for (size_t r = 0; r < x.rows; ++r) {
    DecodePart<T> one = x;
    one.rows = 1;
    one.query += r * x.width;
    one.begin += r;
    one.end += r;
    one.states += r * size;
    one.keys_ahead = 0;
    run_together<AllRows>(one);
  }
}

template <class S, class T>
void run(const DecodePart<T>& x) {
  x.key.pages ? run_all<InPages<S>>(x) : run_all<Lined<S>>(x);
}

template <class S, class T>
void query_row(const void* row, size_t width, T scale, T* out) {
  load_parted_row(static_cast<const S*>(row), width, out);
  for (size_t e = 0; e < width; ++e) out[e] *= scale;
}

}  // namespace decode_rows

void query_f32(const void* row, size_t width, float scale, float* out) {
  decode_rows::query_row<float>(row, width, scale, out);
}
void query_bf16(const void* row, size_t width, float scale, float* out) {
  decode_rows::query_row<hwy::bfloat16_t>(row, width, scale, out);
}
void query_f16(const void* row, size_t width, float scale, float* out) {
  decode_rows::query_row<hwy::float16_t>(row, width, scale, out);
}
void query_f64(const void* row, size_t width, double scale, double* out) {
  decode_rows::query_row<double>(row, width, scale, out);
}
void decode_f32(const DecodePart<float>& part) { decode_rows::run<float>(part); }
void decode_bf16(const DecodePart<float>& part) { decode_rows::run<hwy::bfloat16_t>(part); }
void decode_f16(const DecodePart<float>& part) { decode_rows::run<hwy::float16_t>(part); }
void decode_f64(const DecodePart<double>& part) { decode_rows::run<double>(part); }

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(query_f32);
HWY_EXPORT(query_bf16);
HWY_EXPORT(query_f16);
HWY_EXPORT(query_f64);
HWY_EXPORT(decode_f32);
HWY_EXPORT(decode_bf16);
HWY_EXPORT(decode_f16);
HWY_EXPORT(decode_f64);

template <>
void decode_query<float>(DType stored, const void* row, size_t width, float scale, float* out) {
  if (stored == DType::kBFloat16) return HWY_DYNAMIC_DISPATCH(query_bf16)(row, width, scale, out);
  if (stored == DType::kFloat16) return HWY_DYNAMIC_DISPATCH(query_f16)(row, width, scale, out);
  HWY_DYNAMIC_DISPATCH(query_f32)(row, width, scale, out);
}
template <>
void decode_query<double>(DType, const void* row, size_t width, double scale, double* out) {
  HWY_DYNAMIC_DISPATCH(query_f64)(row, width, scale, out);
}

template <>
void decode_part<float>(DType stored, const DecodePart<float>& part) {
  if (stored == DType::kBFloat16) return HWY_DYNAMIC_DISPATCH(decode_bf16)(part);
  if (stored == DType::kFloat16) return HWY_DYNAMIC_DISPATCH(decode_f16)(part);
  HWY_DYNAMIC_DISPATCH(decode_f32)(part);
}
template <>
void decode_part<double>(DType, const DecodePart<double>& part) {
  HWY_DYNAMIC_DISPATCH(decode_f64)(part);
}
}  // namespace fovea::engine
#endif
