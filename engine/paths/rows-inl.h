// Attention of one query row, keys and values read where they lie: scores, weights and sums. What the
// short path and decoding share.
#include <cstddef>
#include <cstdint>
#include <limits>

#if defined(FOVEA_ENGINE_PATHS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_PATHS_ROWS_INL_H_
#undef FOVEA_ENGINE_PATHS_ROWS_INL_H_
#else
#define FOVEA_ENGINE_PATHS_ROWS_INL_H_
#endif

#include "engine/simd/reduce-inl.h"
#include "engine/simd/stored-inl.h"
#include "engine/simd/weight-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace rows {

namespace hn = hwy::HWY_NAMESPACE;

// Scores of so many keys together: their sums across lanes cost little more than one.
constexpr size_t kTogether = 4;

// s[0 .. kKeys) = q . k[i], q as load_parted_row<S> gives it.
template <class S, class T, size_t kKeys>
HWY_INLINE void some_scores(const T* HWY_RESTRICT q, const S* k, int64_t stride, size_t width,
                            T* HWY_RESTRICT s) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  hn::Vec<decltype(d)> sum[kTogether];
#pragma GCC unroll 4
  for (size_t i = 0; i < kTogether; ++i) sum[i] = hn::Zero(d);
  size_t e = 0;
  // A key's lines one after another, in the order in which the memory sends them.
  for (; e + 4 * N <= width; e += 4 * N) {
    const auto a = hn::LoadU(d, q + e), b = hn::LoadU(d, q + e + N),
               c = hn::LoadU(d, q + e + 2 * N), f = hn::LoadU(d, q + e + 3 * N);
#pragma GCC unroll 4
    for (size_t i = 0; i < kKeys; ++i) {
      const S* row = k + static_cast<int64_t>(i) * stride + e;
      const auto first = load_two(d, row), second = load_two(d, row + 2 * N);
      sum[i] = hn::MulAdd(a, first.a, sum[i]);
      sum[i] = hn::MulAdd(b, first.b, sum[i]);
      sum[i] = hn::MulAdd(c, second.a, sum[i]);
      sum[i] = hn::MulAdd(f, second.b, sum[i]);
    }
  }
  if (e + 2 * N <= width) {
    const auto a = hn::LoadU(d, q + e), b = hn::LoadU(d, q + e + N);
#pragma GCC unroll 4
    for (size_t i = 0; i < kKeys; ++i) {
      const auto two = load_two(d, k + static_cast<int64_t>(i) * stride + e);
      sum[i] = hn::MulAdd(b, two.b, hn::MulAdd(a, two.a, sum[i]));
    }
    e += 2 * N;
  }
  if (e + N <= width) {
    const auto left = hn::LoadU(d, q + e);
#pragma GCC unroll 4
    for (size_t i = 0; i < kKeys; ++i)
      sum[i] = hn::MulAdd(left, load_stored(d, k + static_cast<int64_t>(i) * stride + e), sum[i]);
    e += N;
  }
  if (e < width) {
    const auto left = load_stored_first(d, q + e, width - e);
#pragma GCC unroll 4
    for (size_t i = 0; i < kKeys; ++i) {
      sum[i] = hn::MulAdd(
          left, load_stored_first(d, k + static_cast<int64_t>(i) * stride + e, width - e), sum[i]);
    }
  }
  sum_four(d, sum, s);  // of the missing ones 0, which the mask overwrites
}

// s[0 .. n) = scale s, then their weights, which are not divided yet; past n, up to a whole vector,
// 0. The largest score and the sum.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void weigh(D d, T scale, size_t n, T* HWY_RESTRICT s, T* largest, T* sum) {
  const size_t N = hn::Lanes(d);
  const auto factor = hn::Set(d, scale), nothing = hn::Set(d, -std::numeric_limits<T>::infinity());
  auto top = nothing;
  const size_t whole = n / N * N;
  for (size_t c = 0; c < whole; c += N) {
    const auto x = hn::Mul(factor, load_sums(d, s + c));
    hn::StoreU(x, d, s + c);
    top = hn::Max(top, x);
  }
  if (whole < n) {
    const auto x =
        hn::IfThenElse(hn::FirstN(d, n - whole), hn::Mul(factor, load_sums(d, s + whole)), nothing);
    hn::StoreU(x, d, s + whole);
    top = hn::Max(top, x);
  }
  top = hn::MaxOfLanes(d, top);
  *largest = hn::GetLane(top);
  const auto base = hn::IfThenZeroElse(hn::Eq(top, nothing), top);
  auto total = hn::Zero(d);
  for (size_t c = 0; c < n; c += N) {
    const auto w = weight_of(d, hn::Sub(hn::LoadU(d, s + c), base));
    hn::StoreU(w, d, s + c);
    total = hn::Add(total, w);
  }
  *sum = sum_of_lanes(d, total);
}

// scale q . k, q as above, and the weight of a key that a query sees alone: 1, unless its score is
// no finite number.
template <class S, class T>
HWY_INLINE void weigh_one(const T* HWY_RESTRICT q, const S* k, size_t width, T scale, T* score,
                          T* weight) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  auto sum = hn::Zero(d);
  size_t e = 0;
  for (; e + 2 * N <= width; e += 2 * N) {
    const auto two = load_two(d, k + e);
    sum = hn::MulAdd(hn::LoadU(d, q + e), two.a, sum);
    sum = hn::MulAdd(hn::LoadU(d, q + e + N), two.b, sum);
  }
  for (; e + N <= width; e += N) sum = hn::MulAdd(hn::LoadU(d, q + e), load_stored(d, k + e), sum);
  if (e < width) {
    sum = hn::MulAdd(load_stored_first(d, q + e, width - e), load_stored_first(d, k + e, width - e),
                     sum);
  }
  *score = scale * sum_of_lanes(d, sum);
  const T difference = *score - *score;  // 0 or NaN
  const bool masked = *score == -std::numeric_limits<T>::infinity();
  *weight = masked ? T(0) : T(1) + difference;
}
template <class S>
HWY_INLINE void copy_row(const S* row, size_t width, S* HWY_RESTRICT out) {
  for (size_t e = 0; e < width; ++e) out[e] = row[e];
}

// s[j] = q . k[j] for j < n; some of s past that is overwritten.
template <class S, class T>
HWY_INLINE void scores_of(const T* q, const S* k, int64_t stride, size_t width, size_t n,
                          T* HWY_RESTRICT s) {
  const auto keys = [&](size_t j) { return k + static_cast<int64_t>(j) * stride; };
  size_t j = 0;
  for (; j + kTogether <= n; j += kTogether)
    some_scores<S, T, kTogether>(q, keys(j), stride, width, s + j);
  if (n - j == 1) some_scores<S, T, 1>(q, keys(j), stride, width, s + j);
  if (n - j == 2) some_scores<S, T, 2>(q, keys(j), stride, width, s + j);
  if (n - j == 3) some_scores<S, T, 3>(q, keys(j), stride, width, s + j);
}

// As above, by as few lanes as do: those are fewer steps from the largest score to the sum.
template <class T>
HWY_INLINE void weigh(T scale, size_t n, T* HWY_RESTRICT s, T* largest, T* sum) {
  const hn::CappedTag<T, kTogether> few;
  if (n <= hn::Lanes(few))
    weigh(few, scale, n, s, largest, sum);
  else
    weigh(hn::ScalableTag<T>(), scale, n, s, largest, sum);
}

// kRows rows of weights, w_stride apart, into as many rows of results.
template <class T, class Out>
struct Sums {
  const T* w;
  size_t w_stride;
  Out* out;
  size_t out_stride;
  T inverse = 1;  // every result times this
};

// Rows that lie `stride` elements apart.
template <class S>
struct Lined {
  using Stored = S;
  const S* first;
  int64_t stride;

  Lined(const S* first, int64_t stride) : first(first), stride(stride) {}
  // From anything that says where rows of S lie.
  template <class Where>
  explicit Lined(const Where& x) : first(static_cast<const S*>(x.data)), stride(x.stride) {}
  HWY_INLINE const S* row(size_t j) const { return first + static_cast<int64_t>(j) * stride; }
  // How many rows from j on lie `stride` apart.
  HWY_INLINE size_t in_line(size_t) const { return std::numeric_limits<size_t>::max(); }
  Lined from(size_t j) const { return {row(j), stride}; }
};

// What is done beside a row that is summed.
struct Nothing {
  HWY_INLINE void operator()(size_t) const {}
};

// Columns [0, kVectors * N) of out[r] = inverse * sum_j w[r][j] v[j]; the only vector has `lanes`
// lanes where that is not 0. Calls beside(j) for each row j.
template <size_t kRows, size_t kVectors, class AllRows, class T, class Out, class Beside>
HWY_INLINE void some_columns(const Sums<T, Out>& x, const AllRows& rows, size_t n, size_t column,
                             size_t lanes, const Beside& beside) {
  static_assert(kVectors == 1 || kVectors % 2 == 0);
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  hn::Vec<decltype(d)> sum[kRows][kVectors];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectors; ++i) sum[r][i] = hn::Zero(d);
  const T* HWY_RESTRICT w = x.w;
  for (size_t j = 0; j < n;) {
    const auto* v = rows.row(j) + column;
    const size_t end = j + HWY_MIN(n - j, rows.in_line(j));
    for (; j < end; ++j, v += rows.stride) {
      beside(j);
      const auto add = [&](hn::Vec<decltype(d)> value, size_t i) HWY_ATTR {
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r)
          sum[r][i] = hn::MulAdd(hn::Set(d, w[r * x.w_stride + j]), value, sum[r][i]);
      };
      if constexpr (kVectors == 1) {
        add(lanes ? load_stored_first(d, v, lanes) : load_stored(d, v), 0);
      } else {
#pragma GCC unroll 4
        for (size_t i = 0; i < kVectors; i += 2) {
          const auto two = load_two(d, v + i * N);
          add(two.a, i);
          add(two.b, i + 1);
        }
      }
    }
  }
  const auto factor = hn::Set(d, x.inverse);
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
    Out* out = x.out + r * x.out_stride + column;
    if constexpr (kVectors == 1) {
      store_as(d, hn::Mul(factor, sum[r][0]), out, lanes ? lanes : N);
    } else {
#pragma GCC unroll 4
      for (size_t i = 0; i < kVectors; i += 2) {
        store_two<typename AllRows::Stored>(
            d, {hn::Mul(factor, sum[r][i]), hn::Mul(factor, sum[r][i + 1])}, out + i * N);
      }
    }
  }
}

// All columns of kRows rows, in passes of a few; beside(j) for each row j of a pass.
template <size_t kRows, class AllRows, class T, class Out, class Beside = Nothing>
HWY_INLINE void sum_values(const Sums<T, Out>& x, const AllRows& rows, size_t n, size_t width,
                           const Beside& beside = {}) {
  const size_t N = hn::Lanes(hn::ScalableTag<T>());
  size_t e = 0;
  for (; e + 4 * N <= width; e += 4 * N) some_columns<kRows, 4>(x, rows, n, e, 0, beside);
  for (; e + N <= width; e += N) some_columns<kRows, 1>(x, rows, n, e, 0, beside);
  if (e < width) some_columns<kRows, 1>(x, rows, n, e, width - e, beside);
}

}  // namespace rows
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
