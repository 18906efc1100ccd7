// Weights of a row's edges under rank-one scores: vectors run over heads.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/paths/rank_one_graph.h"
#include "engine/tiles/random.h"

#if defined(FOVEA_ENGINE_GRAPH_RANK_ONE_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_GRAPH_RANK_ONE_WEIGHTS_INL_H_
#undef FOVEA_ENGINE_GRAPH_RANK_ONE_WEIGHTS_INL_H_
#else
#define FOVEA_ENGINE_GRAPH_RANK_ONE_WEIGHTS_INL_H_
#endif

#include "engine/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace rank_one {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kMostHeads = kRankOneHeads;
inline constexpr float kLog2E = 1.44269504088896340736f;
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Scores run over heads: 8 lanes hold the usual number of them. The last vector of an odd number
// reads no further than the row: `lanes` at a time.
using Heads = hn::CappedTag<float, 8>;
using HeadVector = hn::Vec<Heads>;

HWY_INLINE HeadVector load_heads(const float* p, size_t left) {
  const Heads d;
  if (left >= hn::Lanes(d)) return hn::LoadU(d, p);
  HWY_ALIGN float buffer[8] = {};
  for (size_t i = 0; i < left; ++i) buffer[i] = p[i];
  return hn::Load(d, buffer);
}
HWY_INLINE void store_heads(HeadVector v, float* p, size_t left) {
  const Heads d;
  if (left >= hn::Lanes(d)) return hn::StoreU(v, d, p);
  HWY_ALIGN float buffer[8];
  hn::Store(v, d, buffer);
  for (size_t i = 0; i < left; ++i) p[i] = buffer[i];
}
// [maximum, 1 / sum, 0, 0] of each head.
HWY_INLINE void store_statistics(HeadVector maximum, HeadVector inverse, float* p, size_t left) {
  const Heads d;
  if (left >= hn::Lanes(d))
    return hn::StoreInterleaved4(maximum, inverse, hn::Zero(d), hn::Zero(d), d, p);
  HWY_ALIGN float all[4 * 8];
  hn::StoreInterleaved4(maximum, inverse, hn::Zero(d), hn::Zero(d), d, all);
  std::copy_n(all, 4 * left, p);
}
HWY_INLINE HeadVector leaky(HeadVector x, HeadVector slope) {
  const Heads d;
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, slope));
}

// The two halves of random_row of row i, for every head.
HWY_INLINE void draw_row(const RankOneGraph& g, size_t i, uint32_t* low, uint32_t* high) {
  for (size_t h = 0; h < g.heads; ++h) {
    const uint64_t row =
        mix(g.head_seeds[h] ^ static_cast<uint64_t>(g.query_offset + static_cast<int64_t>(i)));
    low[h] = static_cast<uint32_t>(row);
    high[h] = static_cast<uint32_t>(row >> 32);
  }
}
template <class DU>
HWY_INLINE hn::Vec<DU> hash(DU du, hn::Vec<DU> x) {  // random_hash
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, 0x7feb352du));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(du, 0x846ca68bu));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}
// The factor of each head's weight on the edge to `key`: 0 or 1 / (1 - p).
HWY_INLINE HeadVector survival(const Dropout& dropout, const uint32_t* low, const uint32_t* high,
                               uint32_t key) {
  const Heads d;
  const hn::RebindToUnsigned<Heads> du;
  const hn::RebindToSigned<Heads> di;
  const auto first = hash(du, hn::Add(hn::LoadU(du, low), hn::Set(du, key)));
  const auto drawn =
      hn::ShiftRight<8>(hash(du, hn::Xor(first, hn::LoadU(du, high))));  // 24 bits: no sign
  const auto drops =
      hn::Lt(hn::BitCast(di, drawn), hn::Set(di, static_cast<int32_t>(dropout.threshold)));
  return hn::IfThenZeroElse(hn::RebindMask(d, drops),
                            hn::Set(d, static_cast<float>(dropout.scale)));
}

// Drops from the weights of row i's edges, w[edge][padded heads].
HWY_INLINE void drop_row(const RankOneGraph& g, size_t i, float* w) {
  const Heads d;
  const size_t N = hn::Lanes(d), padded = g.padded_heads();
  const size_t begin = static_cast<size_t>(g.row_offsets[i]),
               n = static_cast<size_t>(g.row_offsets[i + 1]) - begin;
  HWY_ALIGN uint32_t low[kMostHeads], high[kMostHeads];
  std::fill(low + g.heads, low + padded, 0u);
  std::fill(high + g.heads, high + padded, 0u);
  draw_row(g, i, low, high);
  for (size_t e = 0; e < n; ++e) {
    const uint32_t key = static_cast<uint32_t>(g.columns[begin + e]);
    for (size_t h = 0; h < g.heads; h += N) {
      float* at = w + e * padded + h;
      hn::StoreU(hn::Mul(hn::LoadU(d, at), survival(g.dropout, low + h, high + h, key)), d, at);
    }
  }
}

// w = exp(w - base) for n edges `padded` apart; returns the sum. Two edges at a time where a vector
// holds them: w has room for one edge more.
template <class D>
HWY_INLINE hn::Vec<D> exponentials(D d, float* w, size_t n, size_t padded, hn::Vec<D> base) {
  if constexpr (HWY_LANES(float) == 2 * hn::MaxLanes(D())) {
    if (padded == hn::MaxLanes(D())) {
      const hn::Twice<D> both;
      hn::StoreU(hn::Set(d, -kInfinity), d, w + n * padded);
      const auto bases = hn::Combine(both, base, base);
      auto sum = hn::Zero(both);
      for (size_t e = 0; e < n; e += 2, w += 2 * padded) {
        const auto scores = hn::Combine(both, hn::LoadU(d, w + padded), hn::LoadU(d, w));
        const auto x = exp2_bounded(both, hn::Mul(hn::Sub(scores, bases), hn::Set(both, kLog2E)));
        sum = hn::Add(sum, x);
        hn::StoreU(x, both, w);
      }
      return hn::Add(hn::LowerHalf(d, sum), hn::UpperHalf(d, sum));
    }
  }
  auto sum = hn::Zero(d);
  for (size_t e = 0; e < n; ++e, w += padded) {
    const auto score = hn::LoadU(d, w);
    const auto x = exp2_bounded(d, hn::Mul(hn::Sub(score, base), hn::Set(d, kLog2E)));
    sum = hn::Add(sum, x);
    hn::StoreU(x, d, w);
  }
  return sum;
}

// Unnormalised weights of row i's edges to w[edge][padded heads], and 1 / sum to `inverse`. Returns
// the first head that sees a score of NaN or +infinity, or how many heads there are.
HWY_INLINE size_t weigh_row(const RankOneGraph& g, size_t i, float* w, float* inverse) {
  const Heads d;
  const size_t N = hn::Lanes(d), padded = g.padded_heads();
  const size_t begin = static_cast<size_t>(g.row_offsets[i]),
               n = static_cast<size_t>(g.row_offsets[i + 1]) - begin;
  const auto slope = hn::Set(d, g.negative_slope);
  size_t spoiled = g.heads;
  for (size_t h = 0; h < g.heads; h += N) {
    const auto q = load_heads(g.query + i * g.heads + h, g.heads - h);
    auto top = hn::Set(d, -kInfinity);
    for (size_t e = 0; e < n; ++e) {
      const float* key = g.key + static_cast<size_t>(g.columns[begin + e]) * g.heads + h;
      const auto score = leaky(hn::Add(q, load_heads(key, g.heads - h)), slope);
      top = hn::Max(top, score);
      hn::StoreU(score, d, w + e * padded + h);
    }
    const auto base = hn::IfThenZeroElse(hn::Eq(top, hn::Set(d, -kInfinity)), top);
    const auto sum = exponentials(d, w + h, n, padded, base);
    const auto none = hn::Eq(sum, hn::Zero(d));
    auto inv = hn::IfThenZeroElse(none, hn::Div(hn::Set(d, 1.0f), sum));
    auto maximum = base;
    const auto infinity = hn::Set(d, kInfinity);  // lanes past the heads hold scores of 0
    const auto right = hn::And(hn::Lt(sum, infinity), hn::Lt(base, infinity));
    if (HWY_UNLIKELY(!hn::AllTrue(d, right))) {
      const auto nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
      inv = hn::IfThenElse(right, inv, nan);
      maximum = hn::IfThenElse(right, maximum, nan);
      spoiled =
          std::min(spoiled, h + static_cast<size_t>(hn::FindKnownFirstTrue(d, hn::Not(right))));
    }
    hn::StoreU(inv, d, inverse + h);
    if (g.statistics)
      store_statistics(maximum, inv, g.statistics + (i * g.heads + h) * 4, g.heads - h);
    if (!g.lse) continue;
    HWY_ALIGN float tops[8], sums[8];
    hn::Store(maximum, d, tops);
    hn::Store(sum, d, sums);
    for (size_t l = 0; l < std::min(N, g.heads - h); ++l) {
      g.lse[i * g.heads + h + l] = sums[l] == 0 ? -kInfinity : tops[l] + std::log(sums[l]);
    }
  }
  return spoiled;
}

}  // namespace rank_one
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
