// Forward on tensor cores: dot products and normalisers of one pass on rows of 16-bit numbers. What
// the two ways through the keys share (mma_forward.h, wgmma_forward.h).
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

struct MmaRows {
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

  FOVEA_INLINE int own(int m, int half) const {
    return (warp() * kM + m) * 16 + lane() / 4 + half * 8;
  }

  // The next tile of keys that has a pair, or `end`.
  FOVEA_INLINE int next(int key, int end, Rectangle& at) {
    for (; key < end; key += kOther)
      if (covers.look(a, s, head, row, kOwn, 0, key, kOther, kOther, at)) return key;
    return end;
  }
  FOVEA_INLINE void copy_keys(int key, int buffer) {
    copy_rows<kOther, kWidth>(shared.keys[buffer], a.key, s.batch, key_head, s.first_key + key,
                              s.keys - key);
  }
  FOVEA_INLINE void copy_values(int key, int buffer) {
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
  FOVEA_INLINE void score(const Mask<true>& mask, const Seen<kM, kOther>& visible,
                          const Given<kM, kOther>& given, float (&x)[kM][kOther / 8][4]) const {
    if constexpr (kAllSeen && kBare) return;
    const float product_scale = static_cast<float>(a.scale);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          float& e = x[m][n][c];
          bool is_seen = kAllSeen || visible.at(mask, m, n, c);
          if constexpr (!kBare) {
            if (!kAllSeen && Modifiers::kReads && !kPanels && !is_seen) {
              e = -infinity_of(T());
              continue;
            }
            float steps[Modifiers::kCount + 1];
            e *= product_scale;
            is_seen = is_seen && e != -infinity_of(T());
            e = given.value(a, mask, m, n, c, e, steps);
          }
          e = is_seen ? e : -infinity_of(T());
        }
      }
    }
  }

  FOVEA_INLINE void score(const Mask<true>& mask, const Seen<kM, kOther>& visible,
                          const Given<kM, kOther>& given, float (&x)[kM][kOther / 8][4]) const {
    if constexpr (kBare) turn(x);
    if (mask.at.whole)
      score<true>(mask, visible, given, x);
    else
      score<false>(mask, visible, given, x);
  }

  // From scores to weights, and their sums.
  FOVEA_INLINE void weigh(const Rectangle& at, float (&x)[kM][kOther / 8][4]) {
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
  }

  FOVEA_INLINE void begin() {
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
  }

  FOVEA_INLINE void end_rows() {
    const int count = least(kOwn, s.queries - row);
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
