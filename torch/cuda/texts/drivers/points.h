// All pairs of points of few dimensions with few values. A thread owns a few rows of one side in
// registers and meets the rows of the other side, which the block stages. Blocks along y share out the
// other side: each leaves a part of its rows' sums, and the parts are added in their order.
#pragma once

namespace fovea::cuda {

constexpr int kPointThreads = 128, kOwn = 4, kPointStage = 128, kPointStep = 4;
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

// Rows first .. end of keys and values to shared memory; whether the values are finite, known to all.
struct StagedKeys {
  T key[kPointStage][kWidth], value[kPointStage][kValueWidth];

  bool stage(const Arguments& a, const Sequence& s, int key_head, int first, int count) {
    bool bad = false;
    __syncthreads();
    for (int n = threadIdx.x; n < count; n += kPointThreads) {
      load_row<kWidth, Operand>(a.key, s.batch, key_head, first + n, key[n]);
      load_row<kValueWidth, Value>(a.value, s.batch, key_head, first + n, value[n]);
#pragma unroll
      for (int c = 0; c < kValueWidth; ++c) bad |= !is_finite(value[n][c]);
    }
    return __syncthreads_or(bad) == 0;
  }
};

inline T distance_sum(const T* query, const T* key) {
  T sum = 0;
#pragma unroll
  for (int f = 0; f < kWidth; ++f) sum = Score::step(sum, query + f, key + f, 1);
  return sum;
}

}  // namespace fovea::cuda
