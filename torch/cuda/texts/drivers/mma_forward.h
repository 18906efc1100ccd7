// Forward on tensor cores: dot products and normalisers of one pass on rows of 16-bit numbers.
#pragma once

namespace fovea::cuda {

constexpr int kM = 2, kOwn = kMmaWarps * 16 * kM, kOther = 64;

struct MmaShared {
  Stored queries[kOwn * kPitch];
  Stored keys[2][kOther * kPitch], values[2][kOther * kValuePitch];
  RowData rows[kOwn];
  int bad[kOther];
};
static_assert(sizeof(MmaShared) <= kSharedBytes);

struct MmaForward {
  const Arguments& a;
  MmaShared& shared;
  Sequence s;
  int head, row;
  float sums[kM][kValueWidth / 8][4] = {};
  float shift[kM][2], total[kM][2] = {}, seen[kM][2] = {};
  bool bad[kM][2] = {};

  int own(int m, int half) const { return (warp() * kM + m) * 16 + lane() / 4 + half * 8; }

  // The next tile of keys that has a pair, or beyond the last.
  int next(int key, Rectangle& at) const {
    for (; key < s.keys; key += kOther)
      if (rectangle_of(a, s, head, row, kOwn, key, kOther, at)) break;
    return key;
  }
  void copy(int key, int buffer) {
    const int key_head = head / (a.heads / a.key_heads);
    copy_rows<kOther, kWidth>(shared.keys[buffer], a.key, s.batch, key_head, s.first_key + key,
                              s.keys - key);
    copy_rows<kOther, kValueWidth>(shared.values[buffer], a.value, s.batch, key_head,
                                   s.first_key + key, s.keys - key);
  }

  void add_tile(const Rectangle& at, int buffer) {
    float e[kM][kOther / 8][4];
    {
      float products[kM][kOther / 8][4];
      multiply_rows<kM, kOther, kWidth>(shared.queries, shared.keys[buffer], products);
#pragma unroll
      for (int m = 0; m < kM; ++m)
#pragma unroll
        for (int n = 0; n < kOther / 8; ++n)
#pragma unroll
          for (int c = 0; c < 4; ++c) e[m][n][c] = -infinity_of(T());
      each_seen<true, kM, kOther>(a, at, shared.rows, products,
                                  [&](int m, int n, int c, const Place&, const Scored& scored,
                                      const RowData&) { e[m][n][c] = scored.e; });
    }
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if constexpr (Normaliser::kShifts) {
          float top = shift[m][half];
#pragma unroll
          for (int n = 0; n < kOther / 8; ++n)
            top = larger(top, larger(e[m][n][2 * half], e[m][n][2 * half + 1]));
          top = lanes_max<4>(top);
          const float rescale =
              shift[m][half] == -infinity_of(T()) ? 0 : exponential(shift[m][half] - top);
          total[m][half] *= rescale;
#pragma unroll
          for (int n = 0; n < kValueWidth / 8; ++n) {
            sums[m][n][2 * half] *= rescale;
            sums[m][n][2 * half + 1] *= rescale;
          }
          shift[m][half] = top;
        }
#pragma unroll
        for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
          for (int c = 2 * half; c < 2 * half + 2; ++c) {
            float& x = e[m][n][c];
            const bool there = x != -infinity_of(T());
            if constexpr (!Normaliser::kShifts) bad[m][half] |= there && !is_finite(x);
            seen[m][half] += there ? 1 : 0;
            x = there ? Normaliser::power(x, shift[m][half]) : 0;
            total[m][half] += x;
            if constexpr (kDropout)
              x *= dropout_factor(a, shared.rows[own(m, half)].random,
                                  at.key + n * 8 + lane() % 4 * 2 + c % 2);
          }
        }
      }
    }
    if (at.whole)
      multiply_columns<kM, kOther, kValueWidth>(e, shared.values[buffer], sums);
    else
      multiply_seen<kM, kOther, kValueWidth>(e, shared.values[buffer], a.value, s.batch,
                                             at.key_head, s.first_key + at.key, shared.bad, sums);
  }

  void run() {
    __syncthreads();
    const int count = least(kOwn, s.queries - row);
    copy_rows<kOwn, kWidth>(shared.queries, a.query, s.batch, head, s.first_query + row, count);
    for (int r = threadIdx.x; r < count; r += kThreads)
      shared.rows[r] = row_data(a, s, head, row + r);
    for (int m = 0; m < kM; ++m) shift[m][0] = shift[m][1] = -infinity_of(T());
    Rectangle at, after;
    int key = next(0, at), buffer = 0;
    if (key < s.keys) copy(key, buffer);
    while (key < s.keys) {
      const int following = next(key + kOther, after);
      wait_copies();
      __syncthreads();
      if (following < s.keys) copy(following, buffer ^ 1);
      add_tile(at, buffer);
      buffer ^= 1;
      key = following;
      at = after;
    }
    wait_copies();
    float factors[kM][2];
    for (int m = 0; m < kM; ++m) {
      for (int half = 0; half < 2; ++half) {
        const float sum = lanes_sum<4>(total[m][half]), pairs = lanes_sum<4>(seen[m][half]);
        const bool spoiled = lanes_any<4>(bad[m][half]) || sum != sum;
        Row made{0, 0, 0, spoiled ? kSpoiled : kEmpty};
        factors[m][half] = spoiled ? nan_of(T()) : T(0);
        if (!spoiled && pairs > 0) {
          made = Normaliser::finish(a, head, shift[m][half], sum, pairs);
          factors[m][half] = Normaliser::factor(shift[m][half], made);
        }
        if (lane() % 4 == 0 && own(m, half) < count)
          keep_row(a, row_index(a, s, head, row + own(m, half)), made, Normaliser::lse(made));
      }
    }
    write_rows<kM, kValueWidth>(a.output, s.batch, head, s.first_query + row, count, sums, factors);
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(128)
    fovea_forward(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<MmaShared*>(bytes);
  const int query_tiles = (a.queries + kOwn - 1) / kOwn;
  const Whole work = static_cast<Whole>(a.batches) * a.heads * query_tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const int tile = query_tiles - 1 - static_cast<int>(n % query_tiles);
    const int head = static_cast<int>(n / query_tiles % a.heads);
    const Sequence s = sequence_of(a, static_cast<int>(n / query_tiles / a.heads));
    if (tile * kOwn >= s.queries) continue;
    MmaForward{a, shared, s, head, tile * kOwn}.run();
  }
}
