// All pairs of points of few dimensions with few values. A thread owns a few rows of one side in
// registers and meets the rows of the other side, which the block stages. Blocks along y share out the
// other side: each leaves a part of its rows' sums, and the parts are added in their order.
#pragma once

namespace fovea::cuda {

constexpr int kPointThreads = 128, kOwn = 8, kPointStage = 256, kPointStep = 4;
constexpr int kBlockRows = kPointThreads * kOwn;

// Rows first .. end of `count` that are the block's along y.
inline void share_of(int count, int& first, int& end) {
  const int each = (count + static_cast<int>(gridDim.y) - 1) / static_cast<int>(gridDim.y);
  first = least(count, each * static_cast<int>(blockIdx.y));
  end = least(count, first + each);
}

// Row r of the thread: neighbouring threads own neighbouring rows.
inline int own_row(int first, int r) {
  return first + r * kPointThreads + static_cast<int>(threadIdx.x);
}

// Where a part of row `index` begins, `numbers` wide.
inline T* part_of(const Arguments& a, Whole index, int part, int numbers) {
  return static_cast<T*>(a.scratch) + (index * a.scratch_row + part) * numbers;
}

template <int kColumns, class Stored>
void load_row(const Rows& rows, int batch, int head, int row, T* to) {
  const Stored* from = row_of<Stored>(rows, batch, head, row);
#pragma unroll
  for (int c = 0; c < kColumns; ++c) to[c] = static_cast<T>(widen(from[c]));
}

// Whether sums over kernels that are positive everywhere are taken without logarithms (scores/kernel.h)
// where that can be: no row's sum is so small that it has lost most of its numbers.
constexpr bool kPositive = Score::kPositive && Normaliser::kShifts;
inline float least_sum(float) { return 8e-25f; }  // 2^-80
inline double least_sum(double) { return 1e-240; }
inline T log_top() { return Score::Function::value(0); }

inline T distance_sum(const T* query, const T* key) {
  T sum = 0;
#pragma unroll
  for (int f = 0; f < kWidth; ++f) sum = Score::step(sum, query + f, key + f, 1);
  return sum;
}

// A row of the side that is staged, in whole loads.
template <int kCount>
struct alignas(16) Numbers {
  T x[(kCount + 3) / 4 * 4];
};

// Rows first .. end of keys and values to shared memory; whether the values are finite, known to all.
struct StagedKeys {
  using Point = Numbers<kWidth + kValueWidth>;
  Point points[kPointStage];

  const T* key(int n) const { return points[n].x; }
  const T* value(int n) const { return points[n].x + kWidth; }
  bool stage(const Arguments& a, const Sequence& s, int key_head, int first, int count) {
    bool bad = false;
    __syncthreads();
    for (int n = threadIdx.x; n < count; n += kPointThreads) {
      Point point;
      load_row<kWidth, Operand>(a.key, s.batch, key_head, first + n, point.x);
      load_row<kValueWidth, Value>(a.value, s.batch, key_head, first + n, point.x + kWidth);
#pragma unroll
      for (int c = 0; c < kValueWidth; ++c) bad |= !is_finite(point.x[kWidth + c]);
      points[n] = point;
    }
    return __syncthreads_or(bad) == 0;
  }
};

}  // namespace fovea::cuda
