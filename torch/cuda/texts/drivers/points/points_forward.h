// Forward on points: a thread owns queries.
#pragma once

namespace fovea::cuda {

constexpr int kPartNumbers = 4 + kValueWidth;  // shift, total, whether seen, whether spoiled; sums

struct PointsForward {
  const Arguments& a;
  StagedKeys& keys;
  Sequence s;
  int head, row;
  T query[kOwn][kWidth] = {}, inverse[kOwn] = {};
  T shift[kOwn], total[kOwn] = {}, sums[kOwn][kValueWidth] = {};

  bool there(int r) const { return own_row(row, r) < s.queries; }

  // Keys n .. of those staged, `count` of them at most. kPlain: all kPointStep are there, and their
  // values are finite.
  template <bool kPlain>
  FOVEA_INLINE void fold(int n, int count) {
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
      T e[kPointStep], top = shift[r];
#pragma unroll
      for (int i = 0; i < kPointStep; ++i) {
        const bool here = kPlain || n + i < count;
        e[i] =
            here ? Score::finish(a, distance_sum(query[r], keys.key(here ? n + i : 0)), inverse[r])
            : kValueFace ? T(0)
                         : -infinity_of(T());
        if constexpr (Normaliser::kShifts) top = larger(top, e[i]);
      }
      T base = 0;
      if constexpr (Normaliser::kShifts) {
        if (top > shift[r]) {
          const T rescale = shift[r] == -infinity_of(T()) ? T(0) : exponential(shift[r] - top);
          total[r] *= rescale;
#pragma unroll
          for (int c = 0; c < kValueWidth; ++c) sums[r][c] *= rescale;
          shift[r] = top;
        }
        base = shift[r] == -infinity_of(T()) ? T(0) : shift[r];  // nothing seen: powers of 0
      }
#pragma unroll
      for (int i = 0; i < kPointStep; ++i) {
        const T x = Normaliser::power(e[i], base);
        total[r] += x;
#pragma unroll
        for (int c = 0; c < kValueWidth; ++c)
          if (kPlain || x != 0) sums[r][c] += x * keys.value(n + i)[c];
      }
    }
  }

  // Every key's share of the largest weight there could be. False: some row must be folded with its
  // own largest score.
  bool fold_positive(int key_head, int first, int end) {
    T number[kOwn];
#pragma unroll
    for (int r = 0; r < kOwn; ++r) number[r] = Score::Positive::row_number(inverse[r]);
    for (int key = first; key < end; key += kPointStage) {
      const int count = least(kPointStage, end - key);
      if (!keys.stage(a, s, key_head, key, count)) return false;
#pragma unroll 4
      for (int n = 0; n < count; ++n) {
        const StagedKeys::Point point = keys.points[n];
#pragma unroll
        for (int r = 0; r < kOwn; ++r) {
          T slope;
          const T x = Score::Positive::ratio(distance_sum(query[r], point.x), number[r], slope);
          total[r] += x;
#pragma unroll
          for (int c = 0; c < kValueWidth; ++c) sums[r][c] += x * point.x[kWidth + c];
        }
      }
    }
    bool small = false;
    for (int r = 0; r < kOwn; ++r) small |= there(r) && !(total[r] >= least_sum(T()));
    return !__syncthreads_or(small);
  }

  void fold_all(int key_head, int first, int end) {
    for (int r = 0; r < kOwn; ++r) {
      shift[r] = -infinity_of(T());
      total[r] = 0;
      for (int c = 0; c < kValueWidth; ++c) sums[r][c] = 0;
    }
    for (int key = first; key < end; key += kPointStage) {
      const int count = least(kPointStage, end - key);
      const bool finite = keys.stage(a, s, key_head, key, count);
      int n = 0;
      if (finite)
        for (; n + kPointStep <= count; n += kPointStep) fold<true>(n, count);
      for (; n < count; n += kPointStep) fold<false>(n, count);
    }
  }

  void run() {
    for (int r = 0; r < kOwn; ++r) {
      shift[r] = log_top();
      if (!there(r)) continue;
      load_row<kWidth, Operand>(a.query, s.batch, head, own_row(row, r), query[r]);
      inverse[r] = 1 / element<T>(a.weight, s.batch, head, own_row(row, r), 0);
    }
    int first, end;
    share_of(s.keys, first, end);
    const int key_head = head / (a.heads / a.key_heads);
    bool folded = false;
    if constexpr (kPositive) folded = fold_positive(key_head, first, end);
    if (!folded) fold_all(key_head, first, end);
    for (int r = 0; r < kOwn; ++r) {
      if (!there(r)) continue;
      T* part = part_of(a, row_index(a, s, head, own_row(row, r)), blockIdx.y, kPartNumbers);
      part[0] = shift[r];
      part[1] = total[r];
      part[2] = end > first && (!Normaliser::kShifts || shift[r] > -infinity_of(T())) ? 1 : 0;
      part[3] = is_finite(total[r]) ? 0 : 1;  // of a score that is no number
      for (int c = 0; c < kValueWidth; ++c) part[4 + c] = sums[r][c];
    }
  }
};

// A thread brings the parts of a row together, in their order.
inline void merge_points(const Arguments& a, const Sequence& s, int head, int row) {
  const Whole index = row_index(a, s, head, row);
  const int parts = static_cast<int>(a.scratch_row);
  T shift = -infinity_of(T()), total = 0, sums[kValueWidth] = {};
  bool seen = false, bad = false;
  for (int n = 0; n < parts; ++n) {
    const T* part = part_of(a, index, n, kPartNumbers);
    shift = larger(shift, part[0]);
    seen |= part[2] != 0;
    bad |= part[3] != 0;
  }
  for (int n = 0; n < parts; ++n) {
    const T* part = part_of(a, index, n, kPartNumbers);
    if (part[2] == 0) continue;
    const T factor = Normaliser::kShifts ? exponential(part[0] - shift) : T(1);
    total += factor * part[1];
    for (int c = 0; c < kValueWidth; ++c) sums[c] += factor * part[4 + c];
  }
  Row made{0, 0, 0, bad ? kSpoiled : kEmpty};
  T factor = bad ? nan_of(T()) : T(0);
  if (!bad && seen) {
    made = Normaliser::finish(a, head, shift, total, 1);
    factor = Normaliser::factor(shift, made);
  }
  keep_row(a, index, made, Normaliser::lse(made));
  Value* out = row_of<Value>(a.output, s.batch, head, row);
  for (int c = 0; c < kValueWidth; ++c) narrow(factor == 0 ? T(0) : factor * sums[c], out[c]);
}

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(128)
    fovea_forward(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  __shared__ StagedKeys keys;
  each_query_tile(a, kBlockRows, [&](const Sequence& s, int head, int row) {
    PointsForward{a, keys, s, head, row}.run();
  });
}

// A thread for each row.
extern "C" __global__ void __launch_bounds__(128)
    fovea_merge(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  const Whole n = static_cast<Whole>(blockIdx.x) * kPointThreads + threadIdx.x;
  if (n >= a.rows) return;
  const int row = static_cast<int>(n % a.queries), head = static_cast<int>(n / a.queries % a.heads);
  merge_points(a, sequence_of(a, static_cast<int>(n / a.queries / a.heads)), head, row);
}
