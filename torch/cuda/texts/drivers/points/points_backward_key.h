// The gradients of key and value on points: a thread owns keys.
#pragma once

namespace fovea::cuda {

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

// The point, the output's gradient, and number, weight, less, slope.
struct StagedPositive {
  static constexpr int kOutput = kWidth, kRow = kWidth + kValueWidth;
  using Query = Numbers<kRow + 4>;
  Query queries[kPointStage];

  // False, to all threads: a row must be looked at pair by pair.
  bool stage(const Arguments& a, const Sequence& s, int head, int first, int count) {
    bool all = true;
    __syncthreads();
    for (int n = threadIdx.x; n < count; n += kPointThreads) {
      Query query;
      load_row<kWidth, Operand>(a.query, s.batch, head, first + n, query.x);
      PointRow row = point_row(a, s, head, first + n);
      row.data.delta = static_cast<const T*>(a.delta)[row_index(a, s, head, first + n)];
      PositiveRow positive;
      all &= positive_row(row.data, positive);
#pragma unroll
      for (int c = 0; c < kValueWidth; ++c) {
        query.x[kOutput + c] = row.d_output[c];
        all &= is_finite(row.d_output[c]);
      }
      query.x[kRow] = positive.number;
      query.x[kRow + 1] = positive.weight;
      query.x[kRow + 2] = positive.less;
      query.x[kRow + 3] = positive.slope;
      queries[n] = query;
    }
    return !__syncthreads_or(!all);
  }
};

union StagedRows {
  StagedQueries any;
  StagedPositive positive;
};

struct PointsKeyGradient {
  const Arguments& a;
  StagedRows& staged;
  Sequence s;
  int key_head, first_key;
  T key[kOwn][kWidth] = {}, value[kOwn][kValueWidth] = {};
  T sums[kOwn][kWidth] = {}, values[kOwn][kValueWidth] = {};
  bool finite = true;  // all values of the block's keys

  bool there(int r) const { return own_row(first_key, r) < s.keys; }

  // False: a row must be looked at pair by pair.
  FOVEA_INLINE bool meet_positive(int head, int first, int count) {
    if (!staged.positive.stage(a, s, head, first, count)) return false;
#pragma unroll 2
    for (int n = 0; n < count; ++n) {
      const StagedPositive::Query query = staged.positive.queries[n];
      const T* const numbers = query.x + StagedPositive::kRow;
      const PositiveRow row{numbers[0], numbers[1], numbers[2], numbers[3]};
#pragma unroll
      for (int r = 0; r < kOwn; ++r) {
        T weight, g;
        positive_pair(distance_sum(query.x, key[r]), row, query.x + StagedPositive::kOutput,
                      value[r], weight, g);
        g *= row.slope;
#pragma unroll
        for (int f = 0; f < kWidth; ++f) sums[r][f] += g * (key[r][f] - query.x[f]);
#pragma unroll
        for (int c = 0; c < kValueWidth; ++c)
          values[r][c] += weight * query.x[StagedPositive::kOutput + c];
      }
    }
    return true;
  }

  void meet(int head, int first, int count) {
    if constexpr (kPositive)
      if (finite && meet_positive(head, first, count)) return;
    StagedQueries& queries = staged.any;
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
      for (int c = 0; c < kValueWidth; ++c) finite &= is_finite(value[r][c]);
    }
    finite = !__syncthreads_or(!finite);
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
      const bool is_there = there(r);
      const Whole index = (static_cast<Whole>(s.batch) * a.key_heads + key_head) * a.keys + at;
      T* part = part_of(a, index, blockIdx.y, kWidth + kValueWidth);
      for (int f = 0; f < kWidth; ++f) part[f] = is_there ? sums[r][f] : T(0);
      for (int c = 0; c < kValueWidth; ++c) part[kWidth + c] = is_there ? values[r][c] : T(0);
    }
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(128)
    fovea_gradient_key(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  __shared__ StagedRows staged;
  const int tiles = (a.keys + kBlockRows - 1) / kBlockRows;
  const Whole work = static_cast<Whole>(a.batches) * a.key_heads * tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const Sequence s = sequence_of(a, static_cast<int>(n / tiles / a.key_heads));
    PointsKeyGradient{a, staged, s, static_cast<int>(n / tiles % a.key_heads),
                      static_cast<int>(n % tiles) * kBlockRows}
        .run();
  }
}
