// Forward on tensor cores: dot products and normalisers of one pass on rows of 16-bit numbers.
//
// A score is kept as x, with e = x * `scale`: without modifiers x is the bare product, and the
// exponential takes the factor along.
#pragma once

namespace fovea::cuda {

constexpr int kM = kForwardM, kOwn = kMmaWarps * 16 * kM, kOther = kForwardKeys;
// A row is brought to its largest score when that is this many powers of two above the one it has:
// sums stay far from the ends of their numbers, and most tiles need no such step.
constexpr float kLate = 8;

struct alignas(kAligned) MmaShared {
  Stored queries[kOwn * kPitch];
  Stored keys[2][kOther * kPitch], values[2][kOther * kValuePitch];
  unsigned long long random[kDropout ? kOwn : 1];
  int bad[kOther];
  unsigned char covers[kThreads];
};
static_assert(sizeof(MmaShared) <= kSharedBytes);

struct MmaForward {
  const Arguments& a;
  MmaShared& shared;
  Sequence s;
  int head, row;
  int key_head;
  float scale, unit;
  Covers covers;
  float sums[kM][kValueWidth / 8][4] = {};
  float shift[kM][2], total[kM][2] = {};
  bool bad[kM][2] = {}, seen[kM][2] = {};  // without a shift, which tells both

  int own(int m, int half) const { return (warp() * kM + m) * 16 + lane() / 4 + half * 8; }

  // The next tile of keys that has a pair, or `end`.
  int next(int key, int end, Rectangle& at) {
    for (; key < end; key += kOther)
      if (covers.look(a, s, head, row, kOwn, 0, key, kOther, kOther, at)) return key;
    return end;
  }
  void copy(int key, int buffer) {
    copy_rows<kOther, kWidth>(shared.keys[buffer], a.key, s.batch, key_head, s.first_key + key,
                              s.keys - key);
    copy_rows<kOther, kValueWidth>(shared.values[buffer], a.value, s.batch, key_head,
                                   s.first_key + key, s.keys - key);
  }

  // The scale made positive, so that the largest product is the largest score.
  FOVEA_INLINE void turn(float (&x)[kM][kOther / 8][4]) const {
    const float given = static_cast<float>(a.scale);
    if (given > 0) return;
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int n = 0; n < kOther / 8; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) x[m][n][c] = given == 0 ? 0 * x[m][n][c] : -x[m][n][c];
  }

  // From products to scores, -infinity where a pair is not seen.
  template <bool kAllSeen>
  FOVEA_INLINE void score(const Mask<true>& mask, const Given<kM, kOther>& given,
                          float (&x)[kM][kOther / 8][4]) const {
    if constexpr (kAllSeen && kBare) return;
    const float product_scale = static_cast<float>(a.scale);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          float& e = x[m][n][c];
          bool is_seen = kAllSeen || mask.allows(m, n, c);
          if constexpr (!kBare) {
            if (!kAllSeen && Modifiers::kReads && !is_seen) {
              e = -infinity_of(T());
              continue;
            }
            float steps[Modifiers::kCount + 1];
            e *= product_scale;
            is_seen = is_seen && e != -infinity_of(T());
            e = given.template value<kAllSeen>(a, mask, m, n, c, e, steps);
          }
          e = is_seen ? e : -infinity_of(T());
        }
      }
    }
  }

  // Each lane looks at its own numbers; the lanes of a row meet only where one of the warp is late.
  FOVEA_INLINE void shift_rows(const float (&x)[kM][kOther / 8][4]) {
    float top[kM][2];
    bool is_late = false;
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        top[m][half] = shift[m][half];
#pragma unroll
        for (int n = 0; n < kOther / 8; ++n)
          top[m][half] = larger(top[m][half], larger(x[m][n][2 * half], x[m][n][2 * half + 1]));
        is_late |= (top[m][half] - shift[m][half]) * unit > kLate;
      }
    }
    if (!__ballot_sync(~0u, is_late)) return;  // soon always
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) shift_row(m, half, lanes_max<4>(top[m][half]));
  }
  FOVEA_INLINE void shift_row(int m, int half, float top) {
    const bool is_late = (top - shift[m][half]) * unit > kLate;
    const float rescale = is_late ? power_of_two((shift[m][half] - top) * unit) : 1;
    total[m][half] *= rescale;
#pragma unroll
    for (int n = 0; n < kValueWidth / 8; ++n) {
      sums[m][n][2 * half] *= rescale;
      sums[m][n][2 * half + 1] *= rescale;
    }
    shift[m][half] = is_late ? top : shift[m][half];
  }

  FOVEA_INLINE void add_tile(const Rectangle& at, int buffer) {
    float x[kM][kOther / 8][4];
    multiply_rows<kM, kOther, kWidth, kOwn, kOther>(shared.queries, warp() * kM * 16,
                                                    shared.keys[buffer], 0, x);
    const Mask<true> mask(a, s, at, own(0, 0));
    Given<kM, kOther> given;
    given.read(a, mask);
    wait_products(x);
    if constexpr (kBare) turn(x);
    if (at.whole)
      score<true>(mask, given, x);
    else
      score<false>(mask, given, x);
    if constexpr (Normaliser::kShifts) shift_rows(x);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float base = Normaliser::base(shift[m][half], unit);
#pragma unroll
        for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
          for (int c = 2 * half; c < 2 * half + 2; ++c) {
            float& p = x[m][n][c];
            if constexpr (!Normaliser::kShifts) {
              const bool there = p != -infinity_of(T());
              bad[m][half] |= there && !is_finite(p);
              seen[m][half] |= there;
            }
            p = Normaliser::power_at(p, unit, base);
            total[m][half] += p;
            if constexpr (kDropout)
              p *= dropout_factor(a, shared.random[own(m, half)],
                                  at.key + n * 8 + lane() % 4 * 2 + c % 2);
          }
        }
      }
    }
    const bool has_bad =
        !at.whole && __syncthreads_or(finds_bad<kOther, kValueWidth>(shared.values[buffer]));
    multiply_seen<kM, kOther, kValueWidth, kOther>(has_bad, x, shared.values[buffer], 0, a.value,
                                                   s.batch, key_head, s.first_key + at.key,
                                                   shared.bad, sums);
    wait_products(sums);
  }

  FOVEA_INLINE void run() {
    __syncthreads();
    const int count = least(kOwn, s.queries - row);
    copy_rows<kOwn, kWidth>(shared.queries, a.query, s.batch, head, s.first_query + row, count);
    if constexpr (kDropout)
      for (int r = threadIdx.x; r < count; r += kThreads)
        shared.random[r] = row_data(a, s, head, row + r).random;
    const float given = static_cast<float>(a.scale);
    scale = !kBare || given == 0 ? 1 : given > 0 ? given : -given;
    unit = scale * Normaliser::kUnit;
    for (int m = 0; m < kM; ++m) shift[m][0] = shift[m][1] = -infinity_of(T());
    covers.kept = shared.covers;
    Rectangle at, after;
    int first, end, buffer = 0;
    key_range(a, s, head, row, kOwn, first, end);
    int key = next(first / kOther * kOther, end, at);
    if (key < end) copy(key, buffer);
    while (key < end) {
      const int following = next(key + kOther, end, after);
      end_copies();
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
          made = Normaliser::finish(a, head, shift[m][half] * scale, sum, 1);
          factors[m][half] = Normaliser::factor(shift[m][half] * scale, made);
        }
        if (lane() % 4 == 0 && own(m, half) < count)
          keep_row(a, row_index(a, s, head, row + own(m, half)), made, Normaliser::lse(made));
      }
    }
    write_rows<kM, kValueWidth>(a.output, s.batch, head, s.first_query + row, count, sums, factors);
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(fovea::cuda::kThreads, fovea::cuda::kResident)
    fovea_forward(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<MmaShared*>(bytes);
  each_query_tile(a, kOwn, [&](const Sequence& s, int head, int row) {
    MmaForward{a, shared, s, head, row, key_head_of(a, head)}.run();
  });
}
