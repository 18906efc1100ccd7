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
  float shift[kM][2], total[kM][2] = {};
  bool bad[kM][2] = {}, seen[kM][2] = {};  // without a shift, which tells both

  int own(int m, int half) const { return (warp() * kM + m) * 16 + lane() / 4 + half * 8; }

  // The next tile of keys that has a pair, or `end`.
  int next(int key, int end, Rectangle& at) const {
    for (; key < end; key += kOther)
      if (rectangle_of(a, s, head, row, kOwn, key, kOther, at)) return key;
    return end;
  }
  void copy(int key, int buffer) {
    const int key_head = key_head_of(a, head);
    copy_rows<kOther, kWidth>(shared.keys[buffer], a.key, s.batch, key_head, s.first_key + key,
                              s.keys - key);
    copy_rows<kOther, kValueWidth>(shared.values[buffer], a.value, s.batch, key_head,
                                   s.first_key + key, s.keys - key);
  }

  // Brings a row to the largest score so far.
  FOVEA_INLINE void shift_row(int m, int half, const float (&e)[kM][kOther / 8][4]) {
    float top = shift[m][half];
#pragma unroll
    for (int n = 0; n < kOther / 8; ++n)
      top = larger(top, larger(e[m][n][2 * half], e[m][n][2 * half + 1]));
    top = lanes_max<4>(top);
    if (__ballot_sync(~0u, top > shift[m][half])) {  // soon seldom
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
  }

  FOVEA_INLINE void add_tile(const Rectangle& at, int buffer) {
    float e[kM][kOther / 8][4];
    multiply_rows<kM, kOther, kWidth>(of_warp<kM, kWidth>(shared.queries), shared.keys[buffer], e);
    each_pair<true, kM, kOther>(a, s, at, shared.rows, e, -infinity_of(T()),
                                [](int, int, int, const Place&, const Scored& scored,
                                   const RowData&, bool) { return scored.e; });
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if constexpr (Normaliser::kShifts) shift_row(m, half, e);
        const float base = Normaliser::base(shift[m][half]);
#pragma unroll
        for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
          for (int c = 2 * half; c < 2 * half + 2; ++c) {
            float& x = e[m][n][c];
            if constexpr (!Normaliser::kShifts) {
              const bool there = x != -infinity_of(T());
              bad[m][half] |= there && !is_finite(x);
              seen[m][half] |= there;
            }
            x = Normaliser::power_from(x, base);
            total[m][half] += x;
            if constexpr (kDropout)
              x *= dropout_factor(a, shared.rows[own(m, half)].random,
                                  at.key + n * 8 + lane() % 4 * 2 + c % 2);
          }
        }
      }
    }
    multiply_seen<kM, kOther, kValueWidth>(at.whole, e, shared.values[buffer], a.value, s.batch,
                                           key_head_of(a, head), s.first_key + at.key, shared.bad,
                                           sums);
  }

  void run() {
    __syncthreads();
    const int count = least(kOwn, s.queries - row);
    copy_rows<kOwn, kWidth>(shared.queries, a.query, s.batch, head, s.first_query + row, count);
    for (int r = threadIdx.x; r < count; r += kThreads)
      shared.rows[r] = row_data(a, s, head, row + r);
    for (int m = 0; m < kM; ++m) shift[m][0] = shift[m][1] = -infinity_of(T());
    Rectangle at, after;
    int first, end, buffer = 0;
    key_range(a, s, head, row, kOwn, first, end);
    int key = next(first / kOther * kOther, end, at);
    if (key < end) copy(key, buffer);
    while (key < end) {
      const int following = next(key + kOther, end, after);
      wait_copies();
      __syncthreads();
      if (following < end) copy(following, buffer ^ 1);
      add_tile(at, buffer);
      buffer ^= 1;
      key = following;
      at = after;
    }
    wait_copies();
    float factors[kM][2];
    for (int m = 0; m < kM; ++m) {
      for (int half = 0; half < 2; ++half) {
        const float sum = lanes_sum<4>(total[m][half]);
        const bool spoiled = lanes_any<4>(bad[m][half]) || sum != sum;
        const bool any =
            Normaliser::kShifts ? shift[m][half] > -infinity_of(T()) : lanes_any<4>(seen[m][half]);
        Row made{0, 0, 0, spoiled ? kSpoiled : kEmpty};
        factors[m][half] = spoiled ? nan_of(T()) : T(0);
        if (!spoiled && any) {
          made = Normaliser::finish(a, head, shift[m][half], sum, 1);
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
  each_query_tile(a, kOwn, [&](const Sequence& s, int head, int row) {
    MmaForward{a, shared, s, head, row}.run();
  });
}
