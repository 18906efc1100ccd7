// One key: that of the largest score (the first of equals), or one drawn from the softmax. The choice
// has no gradient. The lse output is the log of its softmax probability, for REINFORCE:
// d log p_c / de_j = [j = c] - p_j.
//
// A draw takes one random number for the row (random.h), and the first key at which the cumulative
// probability exceeds it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/normalisers/hard.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/normalisers/candidates-inl.h"
#include "engine/tiles/random.h"
#include "engine/registry.h"
#include "engine/simd/export.h"
#include "engine/simd/math-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace hard {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public NormaliserStage<T> {
  using D = hn::ScalableTag<T>;
  static constexpr size_t N = HWY_LANES(T);
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static constexpr int64_t kSplit = 1 << 20;  // positions are kept in two parts, exact in float

 public:
  explicit Stage(const StageContext& context)
      : sample_(std::get<Hard>(context.problem.normaliser).sample), seed_(context.problem.seed) {}

  Kind kind() const override { return Kind::kThreshold; }
  bool needs_scores() const override { return true; }  // for the probabilities, in backward

  // Statistics: the largest score, the log of the sum of exp(e - it), and the position chosen (-1
  // for none).
  void solve(Tile<T>& tile, T* lse) const override {
    const size_t columns = candidates::padded<T>(tile.nk);
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      T* stats = tile.rows.stats + r * kStatistics;
      const T most = candidates::largest(s, columns);
      const bool none = most == -kInfinity;
      const size_t largest = static_cast<size_t>(std::find(s, s + tile.nk, most) - s);
      const T sum = none ? T(0) : exponentials(s, columns, most);
      stats[0] = stats[1] = 0;
      store_position(-1, stats);
      if (lse) lse[r] = -kInfinity;
      if (none || !(sum < kInfinity)) {
        const bool spoiled = !none || has_nan(s, tile.nk);
        const T nothing = spoiled ? std::numeric_limits<T>::quiet_NaN() : T(0);
        candidates::store_nothing(tile, r, nothing);
        stats[0] = nothing;
        if (lse && spoiled) lse[r] = nothing;
        continue;
      }
      const size_t chosen = sample_ ? drawn(s, tile, r, sum) : largest;
      stats[0] = most;
      stats[1] = std::log(sum);
      store_position(static_cast<int64_t>(tile.k0 + chosen), stats);
      if (lse) lse[r] = std::log(s[chosen]) - stats[1];
      std::fill_n(s, columns, T(0));
      if (tile.support) {
        s[0] = 1;
        tile.support[r * tile.s_stride] = static_cast<int32_t>(chosen);
        tile.support_count[r] = 1;
      } else {
        s[chosen] = 1;
      }
      tile.rows.carry[r] = 1;
    }
  }

  void weights(Tile<T>& tile) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      std::fill_n(s, candidates::padded<T>(tile.nk), T(0));
      const int64_t c = position(tile.stats + r * kStatistics) - static_cast<int64_t>(tile.k0);
      if (c >= 0 && c < static_cast<int64_t>(tile.nk)) s[c] = 1;
    }
  }

  void backward(Tile<T>& tile) const override {
    const D d;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T *a = tile.s + r * tile.s_stride, *e = tile.scores + r * tile.s_stride,
              *stats = tile.stats + r * kStatistics;
      T* g = tile.ds + r * tile.s_stride;
      const T d_lse = tile.d_lse && position(stats) >= 0 ? tile.d_lse[r] : T(0);
      const auto factor = hn::Set(d, d_lse), most = hn::Set(d, stats[0]),
                 log_sum = hn::Set(d, stats[1]);
      for (size_t c = 0; c < candidates::padded<T>(tile.nk); c += N) {
        const auto p = exp_bounded(d, hn::Sub(hn::Sub(hn::LoadU(d, e + c), most), log_sum));
        const auto x = hn::Mul(factor, hn::Sub(hn::LoadU(d, a + c), p));
        hn::StoreU(d_lse == 0 ? hn::Zero(d) : x, d, g + c);
      }
    }
  }

 private:
  static void store_position(int64_t position, T* stats) {
    stats[2] = static_cast<T>(position < 0 ? -1 : position / kSplit);
    stats[3] = static_cast<T>(position < 0 ? 0 : position % kSplit);
  }
  static int64_t position(const T* stats) {
    return stats[2] < 0 ? -1
                        : static_cast<int64_t>(stats[2]) * kSplit + static_cast<int64_t>(stats[3]);
  }
  static bool has_nan(const T* s, size_t n) {
    return std::any_of(s, s + n, [](T x) { return std::isnan(x); });
  }

  // Scores to exp(e - most) in place; returns their sum.
  static T exponentials(T* s, size_t columns, T most) {
    const D d;
    auto sum = hn::Zero(d);
    for (size_t c = 0; c < columns; c += N) {
      const auto x = exp_bounded(d, hn::Sub(hn::LoadU(d, s + c), hn::Set(d, most)));
      sum = hn::Add(sum, x);
      hn::StoreU(x, d, s + c);
    }
    return sum_of_lanes(d, sum);
  }

  size_t drawn(const T* x, const Tile<T>& tile, size_t r, T sum) const {
    const auto position = static_cast<uint64_t>(tile.position_at(r));
    const double target = random_uniform(random_row(seed_, tile.batch, tile.head, position)) *
                          static_cast<double>(sum);
    double below = 0;
    size_t last = 0;
    for (size_t c = 0; c < tile.nk; ++c) {
      if (x[c] == 0) continue;
      below += x[c];
      last = c;
      if (target < below) break;
    }
    return last;
  }

  const bool sample_;
  const uint64_t seed_;
};

}  // namespace hard

FOVEA_TARGET_FACTORY(NormaliserPointer, make_hard, hard::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(NormaliserPointer, make_hard)
}  // namespace fovea::engine
#endif
