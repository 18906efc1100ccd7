// Gradients of the pairs of a tile on tensor cores, and what a row gives them: two numbers.
#pragma once

namespace fovea::cuda {

// Tiles of the other side lie in kPlaces. With two the sums of a tile are there before the next begins;
// with three they come until the scores of the next are there.
inline int next_place(int place) { return place == kPlaces - 1 ? 0 : place + 1; }

// `level` makes a weight of a score, `less` is what all gradients of the row's scores share. A row
// that saw nothing has weights of 0, a spoiled one of NaN.
struct alignas(8) RowNumbers {
  float level, less;
};
inline RowNumbers numbers_of(const Row& row, float delta, float d_lse) {
  const float level = row.state == kSpoiled ? nan_of(T())
                      : row.state == kEmpty ? infinity_of(T())
                                            : Normaliser::level(row);
  return {level, Normaliser::less(delta, d_lse)};
}

// g: products of query and key, which become gradients of those; d: products of value and the
// output's gradient, which become weights (after dropout). `numbers(m, n, c)` and `random(m, n, c)`
// are the row's; `sinks(m, c)` takes what modifiers' parameters want.
template <bool kAllSeen, bool kOwnerIsQuery, int kM, int kStep, class Numbers, class Random,
          class Sinks>
FOVEA_INLINE void pair_gradients(const Arguments& a, const Mask<kOwnerIsQuery>& mask,
                                 const Seen<kM, kStep>& visible, const Given<kM, kStep>& given,
                                 float (&g)[kM][kStep / 8][4], float (&d)[kM][kStep / 8][4],
                                 Numbers numbers, Random random, Sinks sinks) {
  const float scale = static_cast<float>(a.scale);
  const float unit = kBare ? scale * Normaliser::kUnit : Normaliser::kUnit;
#pragma unroll
  for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        bool seen = kAllSeen || visible.at(mask, m, n, c);
        if (!kAllSeen && Modifiers::kReads && !kPanels && !seen) {
          g[m][n][c] = d[m][n][c] = 0;
          continue;
        }
        float e = g[m][n][c], steps[Modifiers::kCount + 1];
        if constexpr (!kBare) {
          e *= scale;
          seen = seen && e != -infinity_of(T());
          e = given.value(a, mask, m, n, c, e, steps);
        }
        const RowNumbers of = numbers(m, n, c);
        float weight = Normaliser::power_at(e, unit, of.level), da = d[m][n][c];
        if (!kAllSeen || !kBare) weight = seen ? weight : 0;
        float factor = 1;
        if constexpr (kDropout) {
          factor = dropout_factor(a, random(m, n, c), mask.at.key + mask.key(m, n, c));
          da = factor == 0 ? 0 : factor * da;
        }
        // A weight of 0 takes nothing from a product that is not finite.
        float de = weight > 0 ? Normaliser::gradient_at(weight, da, of.less) : weight;
        if constexpr (!kBare)
          de = Modifiers::backward(a.modifier, mask.place(m, n, c), steps, de, 0, sinks(m, c));
        g[m][n][c] = de;
        d[m][n][c] = factor == 0 ? 0 : factor * weight;
      }
    }
  }
}

// The same in two halves, of panels: weights while the products with values are made, then gradients.
constexpr bool kSplits = kPanels && !kDropout && !Modifiers::kLooksBack;

template <bool kAllSeen, bool kOwnerIsQuery, int kM, int kStep, class Numbers>
FOVEA_INLINE void weigh_pairs(const Arguments& a, const Mask<kOwnerIsQuery>& mask,
                              const Seen<kM, kStep>& visible, const Given<kM, kStep>& given,
                              float (&g)[kM][kStep / 8][4], Numbers numbers) {
  const float scale = static_cast<float>(a.scale);
  const float unit = kBare ? scale * Normaliser::kUnit : Normaliser::kUnit;
#pragma unroll
  for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        bool seen = kAllSeen || visible.at(mask, m, n, c);
        float e = g[m][n][c], steps[Modifiers::kCount + 1];
        if constexpr (!kBare) {
          e *= scale;
          seen = seen && e != -infinity_of(T());
          e = given.value(a, mask, m, n, c, e, steps);
        }
        const float weight = Normaliser::power_at(e, unit, numbers(m, n, c).level);
        g[m][n][c] = (kAllSeen && kBare) || seen ? weight : 0;
      }
    }
  }
}
template <bool kOwnerIsQuery, int kM, int kStep, class Numbers>
FOVEA_INLINE void pair_weights(const Arguments& a, const Mask<kOwnerIsQuery>& mask,
                               const Seen<kM, kStep>& visible, const Given<kM, kStep>& given,
                               float (&g)[kM][kStep / 8][4], Numbers numbers) {
  if (mask.at.whole)
    weigh_pairs<true>(a, mask, visible, given, g, numbers);
  else
    weigh_pairs<false>(a, mask, visible, given, g, numbers);
}
// g: weights, which become gradients.
template <int kM, int kBlocks, bool kOwnerIsQuery, class Numbers, class Sinks>
FOVEA_INLINE void weight_gradients(const Arguments& a, const Mask<kOwnerIsQuery>& mask,
                                   float (&g)[kM][kBlocks][4], const float (&d)[kM][kBlocks][4],
                                   Numbers numbers, Sinks sinks) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float weight = g[m][n][c];
        float de = weight > 0 ? Normaliser::gradient_at(weight, d[m][n][c], numbers(m, n, c).less)
                              : weight;
        if constexpr (!kBare) {
          const float steps[Modifiers::kCount + 1] = {};
          de = Modifiers::backward(a.modifier, mask.place(m, n, c), steps, de, 0, sinks(m, c));
        }
        g[m][n][c] = de;
      }
    }
  }
}

}  // namespace fovea::cuda
