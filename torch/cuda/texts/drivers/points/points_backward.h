// Backward on points: a thread owns queries here, keys in points_backward_key.h; scores are computed
// again. What each leaves is a part of a sum (points.h), which the host adds.
#pragma once

namespace fovea::cuda {

// What a query has beside its point.
struct PointRow {
  RowData data;
  T d_output[kValueWidth];
};

inline PointRow point_row(const Arguments& a, const Sequence& s, int head, int row) {
  PointRow made{row_data(a, s, head, row), {}};
  read_statistics(a, row_index(a, s, head, row), made.data);
  load_row<kValueWidth, Value>(a.d_output, s.batch, head, row, made.d_output);
  return made;
}

// One pair: its weight, and the number g of its score (scores/base.h); false: it is not seen.
FOVEA_INLINE bool pair_gradient(const Arguments& a, int head, T sum, const PointRow& row,
                                const T* value, T& weight, T& de, T& g) {
  const RowData& data = row.data;
  const T e = Score::finish(a, sum, data.inverse);
  if (is_masked(e)) return false;
  weight = weight_of(a, head, e, data.row, 0);
  T da = 0;
#pragma unroll
  for (int c = 0; c < kValueWidth; ++c) da += row.d_output[c] * value[c];
  de = gradient_of(a, head, weight, da, e, data);
  g = Score::slope(a, sum, data.inverse, de);
  return true;
}

// The same for kernels that are positive everywhere, without logarithms: what a pair wants of its row.
struct PositiveRow {
  T number, weight, less, slope;  // weight: of a key at the query itself; slope: scores/kernel.h
};
// False: the row has no such weight, or it is no number.
inline bool positive_row(const RowData& data, PositiveRow& to) {
  const bool seen = data.row.state == kSeen;
  to = {Score::Positive::row_number(data.inverse),
        seen ? exponential(log_top() - data.row.shift) * data.row.scale : T(0),
        data.delta - data.d_lse, Score::Positive::row_slope(data.inverse)};
  return data.row.state != kSpoiled && is_finite(to.weight) && is_finite(to.less);
}
// A pair's weight, and g: the gradient of the query is row.slope g (q - k).
FOVEA_INLINE void positive_pair(T square, const PositiveRow& row, const T* d_output, const T* value,
                                T& weight, T& g) {
  T s;
  weight = row.weight * Score::Positive::ratio(square, row.number, s);
  T da = -row.less;
#pragma unroll
  for (int c = 0; c < kValueWidth; ++c) da += d_output[c] * value[c];
  g = weight * da * s;
}

struct PointsQueryGradient {
  const Arguments& a;
  StagedKeys& keys;
  Sequence s;
  int head, row;
  T query[kOwn][kWidth] = {}, sums[kOwn][kWidth + 1] = {};  // the last: of the bandwidth
  PointRow rows[kOwn];

  bool there(int r) const { return own_row(row, r) < s.queries; }

  void start(int r) {
    const int at = own_row(row, r);
    const Whole index = row_index(a, s, head, at);
    load_row<kWidth, Operand>(a.query, s.batch, head, at, query[r]);
    rows[r] = point_row(a, s, head, at);
    if constexpr (Normaliser::kDelta == Delta::kFromOutput) {
      T output[kValueWidth];
      load_row<kValueWidth, Value>(a.output, s.batch, head, at, output);
      for (int c = 0; c < kValueWidth; ++c) rows[r].data.delta += rows[r].d_output[c] * output[c];
    }
    if (blockIdx.y == 0) static_cast<T*>(a.delta)[index] = rows[r].data.delta;
  }

  // False: a row or a value must be looked at one by one.
  bool meet_positive(int key_head, int first, int end) {
    PositiveRow positive[kOwn];
    bool all = true;
    for (int r = 0; r < kOwn; ++r) {
      positive[r] = {0, 0, 0, 0};
      if (there(r)) all &= positive_row(rows[r].data, positive[r]);
      for (int c = 0; c < kValueWidth; ++c) all &= is_finite(rows[r].d_output[c]);
    }
    if (__syncthreads_or(!all)) return false;
    for (int key = first; key < end; key += kPointStage) {
      const int count = least(kPointStage, end - key);
      if (!keys.stage(a, s, key_head, key, count)) return false;
#pragma unroll 2
      for (int n = 0; n < count; ++n) {
        const StagedKeys::Point point = keys.points[n];
#pragma unroll
        for (int r = 0; r < kOwn; ++r) {
          const T square = distance_sum(query[r], point.x);
          T weight, g;
          positive_pair(square, positive[r], rows[r].d_output, point.x + kWidth, weight, g);
#pragma unroll
          for (int f = 0; f < kWidth; ++f) sums[r][f] += g * (query[r][f] - point.x[f]);
          sums[r][kWidth] += g * square;
        }
      }
    }
    for (int r = 0; r < kOwn; ++r) {
      for (int f = 0; f < kWidth; ++f) sums[r][f] *= positive[r].slope;
      sums[r][kWidth] *= -positive[r].slope * rows[r].data.inverse;
    }
    return true;
  }

  void meet_all(int key_head, int first, int end) {
    for (int r = 0; r < kOwn; ++r)
      for (int f = 0; f <= kWidth; ++f) sums[r][f] = 0;
    for (int key = first; key < end; key += kPointStage) {
      const int count = least(kPointStage, end - key);
      keys.stage(a, s, key_head, key, count);
      for (int n = 0; n < count; ++n) {
#pragma unroll
        for (int r = 0; r < kOwn; ++r) {
          const T sum = distance_sum(query[r], keys.key(n));
          T weight, de, g;
          if (!there(r) || !pair_gradient(a, head, sum, rows[r], keys.value(n), weight, de, g))
            continue;
#pragma unroll
          for (int f = 0; f < kWidth; ++f)
            if (g != 0) Score::query_terms(g, &query[r][f], &keys.key(n)[f], &sums[r][f]);
          sums[r][kWidth] += Score::bandwidth_slope(a, sum, rows[r].data.inverse, de);
        }
      }
    }
  }

  void run() {
    for (int r = 0; r < kOwn; ++r) {
      rows[r] = PointRow{{{0, 0, 0, kEmpty}, 1, 0, 0, 0}, {}};
      if (there(r)) start(r);
    }
    int first, end;
    share_of(s.keys, first, end);
    const int key_head = head / (a.heads / a.key_heads);
    bool met = false;
    if constexpr (kPositive) met = meet_positive(key_head, first, end);
    if (!met) meet_all(key_head, first, end);
    for (int r = 0; r < kOwn; ++r) {
      if (!there(r)) continue;
      T* part = part_of(a, row_index(a, s, head, own_row(row, r)), blockIdx.y, kWidth + 1);
      for (int f = 0; f <= kWidth; ++f) part[f] = sums[r][f];
    }
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(128)
    fovea_gradient_query(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  __shared__ StagedKeys keys;
  each_query_tile(a, kBlockRows, [&](const Sequence& s, int head, int row) {
    PointsQueryGradient{a, keys, s, head, row}.run();
  });
}
