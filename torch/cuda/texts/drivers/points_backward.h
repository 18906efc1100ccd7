// Backward on points: a thread owns queries in one kernel, keys in the other; scores are computed
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

  void run() {
    for (int r = 0; r < kOwn; ++r)
      if (there(r)) start(r);
    int first, end;
    share_of(s.keys, first, end);
    for (int key = first; key < end; key += kPointStage) {
      const int count = least(kPointStage, end - key);
      keys.stage(a, s, head / (a.heads / a.key_heads), key, count);
      for (int n = 0; n < count; ++n) {
#pragma unroll
        for (int r = 0; r < kOwn; ++r) {
          const T sum = distance_sum(query[r], keys.key[n]);
          T weight, de, g;
          if (!there(r) || !pair_gradient(a, head, sum, rows[r], keys.value[n], weight, de, g))
            continue;
#pragma unroll
          for (int f = 0; f < kWidth; ++f)
            if (g != 0) Score::query_terms(g, &query[r][f], &keys.key[n][f], &sums[r][f]);
          sums[r][kWidth] += Score::bandwidth_slope(a, sum, rows[r].data.inverse, de);
        }
      }
    }
    for (int r = 0; r < kOwn; ++r) {
      if (!there(r)) continue;
      T* part = part_of(a, row_index(a, s, head, own_row(row, r)), blockIdx.y, kWidth + 1);
      for (int f = 0; f <= kWidth; ++f) part[f] = sums[r][f];
    }
  }
};

struct StagedQueries {
  T query[kPointStage][kWidth];
  PointRow row[kPointStage];

  void stage(const Arguments& a, const Sequence& s, int head, int first, int count) {
    __syncthreads();
    for (int n = threadIdx.x; n < count; n += kPointThreads) {
      load_row<kWidth, Operand>(a.query, s.batch, head, first + n, query[n]);
      row[n] = point_row(a, s, head, first + n);
      row[n].data.delta = static_cast<const T*>(a.delta)[row_index(a, s, head, first + n)];
    }
    __syncthreads();
  }
};

struct PointsKeyGradient {
  const Arguments& a;
  StagedQueries& queries;
  Sequence s;
  int key_head, first_key;
  T key[kOwn][kWidth] = {}, value[kOwn][kValueWidth] = {};
  T sums[kOwn][kWidth] = {}, values[kOwn][kValueWidth] = {};

  bool there(int r) const { return own_row(first_key, r) < s.keys; }

  void meet(int head, int first, int count) {
    queries.stage(a, s, head, first, count);
    for (int n = 0; n < count; ++n) {
      const PointRow& row = queries.row[n];
#pragma unroll
      for (int r = 0; r < kOwn; ++r) {
        const T sum = distance_sum(queries.query[n], key[r]);
        T weight, de, g;
        if (!there(r) || !pair_gradient(a, head, sum, row, value[r], weight, de, g)) continue;
#pragma unroll
        for (int f = 0; f < kWidth; ++f)
          if (g != 0) Score::key_terms(g, &queries.query[n][f], &key[r][f], &sums[r][f]);
#pragma unroll
        for (int c = 0; c < kValueWidth; ++c)
          if (weight != 0) values[r][c] += weight * row.d_output[c];
      }
    }
  }

  void run() {
    for (int r = 0; r < kOwn; ++r) {
      if (!there(r)) continue;
      load_row<kWidth, Operand>(a.key, s.batch, key_head, own_row(first_key, r), key[r]);
      load_row<kValueWidth, Value>(a.value, s.batch, key_head, own_row(first_key, r), value[r]);
    }
    const int shared = a.heads / a.key_heads;
    int first, end;
    share_of(s.queries, first, end);
    for (int head = key_head * shared; head < (key_head + 1) * shared; ++head)
      for (int row = first; row < end; row += kPointStage)
        meet(head, row, least(kPointStage, end - row));
    // Keys beyond the length have gradients too: 0.
    for (int r = 0; r < kOwn; ++r) {
      const int at = own_row(first_key, r);
      if (at >= a.keys) continue;
      const Whole index = (static_cast<Whole>(s.batch) * a.key_heads + key_head) * a.keys + at;
      T* part = part_of(a, index, blockIdx.y, kWidth + kValueWidth);
      for (int f = 0; f < kWidth; ++f) part[f] = sums[r][f];
      for (int c = 0; c < kValueWidth; ++c) part[kWidth + c] = values[r][c];
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

extern "C" __global__ void __launch_bounds__(128)
    fovea_gradient_key(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  __shared__ StagedQueries queries;
  const int tiles = (a.keys + kBlockRows - 1) / kBlockRows;
  const Whole work = static_cast<Whole>(a.batches) * a.key_heads * tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const Sequence s = sequence_of(a, static_cast<int>(n / tiles / a.key_heads));
    PointsKeyGradient{a, queries, s, static_cast<int>(n / tiles % a.key_heads),
                      static_cast<int>(n % tiles) * kBlockRows}
        .run();
  }
}
