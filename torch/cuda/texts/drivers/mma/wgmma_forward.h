// Forward on Hopper's tensor cores: the scores of a tile of keys become weights while the values of
// the tile before are multiplied.
#pragma once

namespace fovea::cuda {

static_assert(kM == 1);

struct GroupForward : MmaRows {
  float rescale[2];
  Given<kM, kOther> given;       // of the tile whose scores come next
  Word weights[kOther / 16][4];  // of the tile whose values come next

  // Each lane looks at its own numbers; the lanes of a row meet only where one of the warp is late.
  // Whether sums want `rescale`.
  FOVEA_INLINE bool shift_rows(const float (&x)[kM][kOther / 8][4]) {
    float top[2];
    bool is_late = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float even = shift[0][half], odd = even;  // two chains
#pragma unroll
      for (int n = 0; n < kOther / 8; n += 2) {
        even = larger(even, larger(x[0][n][2 * half], x[0][n][2 * half + 1]));
        odd = larger(odd, larger(x[0][n + 1][2 * half], x[0][n + 1][2 * half + 1]));
      }
      top[half] = larger(even, odd);
      is_late |= (top[half] - shift[0][half]) * unit > kLate;
    }
    if (!__ballot_sync(~0u, is_late)) return false;  // soon always
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float best = lanes_max<4>(top[half]);
      const bool late = (best - shift[0][half]) * unit > kLate;
      rescale[half] = late ? power_of_two((shift[0][half] - best) * unit) : 1;
      total[0][half] *= rescale[half];
      shift[0][half] = late ? best : shift[0][half];
    }
    return true;
  }
  FOVEA_INLINE void rescale_sums() {
#pragma unroll
    for (int n = 0; n < kValueWidth / 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) sums[0][n][c] *= rescale[c / 2];
  }

  FOVEA_INLINE void ask_scores(int buffer, float (&x)[kM][kOther / 8][4]) {
    multiply_rows<kM, kOther, kWidth, kOwn, kOther>(shared.queries, warp() * 16,
                                                    shared.keys[buffer], 0, x);
  }
  FOVEA_INLINE void ask_sums(int buffer) {
    multiply_packed<kOther, kValueWidth, kOther>(weights, shared.values[buffer], 0, sums[0]);
  }
  FOVEA_INLINE void read_given(const Rectangle& at) {
    given.read(a, Mask<true>(a, s, at, own(0, 0)));
  }
  // From products, of which kLeft later ones may be on their way, to weights; whether sums want
  // `rescale`. Then what the tile after reads is asked for, if there is one.
  template <int kLeft>
  FOVEA_INLINE bool take_scores(const Rectangle& at, float (&x)[kM][kOther / 8][4],
                                const Rectangle& after, bool has_after) {
    const Mask<true> mask(a, s, at, own(0, 0));
    Seen<kM, kOther> visible;
    visible.look(a, mask);
    wait_for<kLeft>(x[0]);
    score(mask, visible, given, x);
    if (has_after) read_given(after);
    bool rescales = false;
    if constexpr (Normaliser::kShifts) rescales = shift_rows(x);
    weigh(at, x);
    finish_first(__float_as_uint(total[0][0] + total[0][1]));
    return rescales;
  }

  // Before the values of a tile are multiplied: whether some are not finite, which then are zeros.
  FOVEA_INLINE bool zeroes_bad(const Rectangle& at, int buffer) {
    return !at.whole && zero_bad<kOther, kValueWidth>(shared.values[buffer], shared.bad);
  }
  FOVEA_INLINE void add_zeroed(const Rectangle& at) {
    const Whole first = s.first_key + at.key;
    add_bad<kOther, kValueWidth>(
        weights, [&](int r) { return row_of<Stored>(a.value, s.batch, key_head, first + r); },
        shared.bad, sums[0]);
    __syncthreads();
  }

  // Keys are one tile ahead of values. A tile's copies begin after a barrier that comes when its place
  // was read for the last time, and end before the next.
  FOVEA_INLINE void add_tiles(int first, int end) {
    Rectangle at, after, last;
    int buffer = 0, key = next(first / kOther * kOther, end, at);
    if (key >= end) return;
    float x[kM][kOther / 8][4];
    copy_keys(key, 0);
    read_given(at);
    int following = next(key + kOther, end, after);
    end_copies();
    __syncthreads();
    ask_scores(0, x);
    copy_values(key, 0);
    if (following < end) copy_keys(following, 1);
    take_scores<0>(at, x, after, following < end);  // sums are 0
    pack_all<kOther>(x[0], weights);
    while (following < end) {
      end_copies();
      __syncthreads();
      const bool has_bad = zeroes_bad(at, buffer);
      ask_scores(buffer ^ 1, x);
      ask_sums(buffer);
      copy_values(following, buffer ^ 1);
      const int third = next(following + kOther, end, last);
      if (third < end) copy_keys(third, buffer);
      const bool rescales = take_scores<1>(after, x, last, third < end);
      wait_for<0>(sums[0]);
      if (has_bad) add_zeroed(at);
      if (rescales) rescale_sums();
      pack_all<kOther>(x[0], weights);
      buffer ^= 1;
      following = third;
      at = after;
      after = last;
    }
    end_copies();
    __syncthreads();
    const bool has_bad = zeroes_bad(at, buffer);
    ask_sums(buffer);
    wait_for<0>(sums[0]);
    if (has_bad) add_zeroed(at);
  }

  FOVEA_INLINE void run() {
    begin();
    int first, end;
    key_range(a, s, head, row, kOwn, first, end);
    add_tiles(first, end);
    wait_copies();
    end_rows();
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(fovea::cuda::kThreads, fovea::cuda::kResident)
    fovea_forward(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<MmaShared*>(bytes);
  each_query_tile(a, kOwn, [&](const Sequence& s, int head, int row) {
    GroupForward{{a, shared, s, head, row, key_head_of(a, head)}}.run();
  });
}
