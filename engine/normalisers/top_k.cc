// Softmax over the k largest scores of a row, of equal ones the lower position; over all if the row
// sees fewer than k keys.
//
// Partial selection: the row is divided into at least 2k groups. The k-th largest of the groups'
// maxima is a bound that at least k scores reach, so only scores that reach it are ranked: few more
// than k. Backward is that of softmax, on the chosen scores.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/normalisers/top_k.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <functional>
#include <limits>

#include "engine/normalisers/candidates-inl.h"
#include "engine/registry.h"
#include "engine/simd/export.h"
#include "engine/simd/math-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace top_k {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public NormaliserStage<T> {
  using D = hn::ScalableTag<T>;
  static constexpr size_t N = HWY_LANES(T);
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static constexpr size_t kVectors = 4, kGroups = kVectors * N;

 public:
  explicit Stage(const StageContext& context)
      : k_(static_cast<size_t>(std::get<TopK>(context.problem.normaliser).k)) {}

  Kind kind() const override { return Kind::kThreshold; }
  RowTerm row_term() const override { return RowTerm::kOutput; }

  // Statistics: the largest score, 1 / sum, the k-th score, and the position of the last one equal
  // to it that is chosen (exact up to 2^24 in float).
  void solve(Tile<T>& tile, T* lse) const override {
    auto& list = candidates::list_of_this_thread<T>();
    const size_t columns = candidates::padded<T>(tile.nk);
    list.reserve(columns);
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* s = tile.s + r * tile.s_stride;
      T* stats = tile.rows.stats + r * kStatistics;
      std::fill_n(stats, kStatistics, T(0));
      stats[2] = kInfinity;  // nothing is chosen
      if (lse) lse[r] = -kInfinity;
      const T most = candidates::largest(s, columns);
      const auto spoil = [&] {
        stats[0] = std::numeric_limits<T>::quiet_NaN();
        candidates::store_nothing(tile, r, stats[0]);
        if (lse) lse[r] = stats[0];
      };
      if (most == kInfinity) {
        spoil();
        continue;
      }
      candidates::collect(s, columns, bound(s, tile.nk), most, list);
      T last_value = -kInfinity, last_column = 0;
      choose(list, &last_value, &last_column);
      const T sum = exponentials(list);
      if (list.n == 0) {
        candidates::store_nothing(tile, r, T(0));
        continue;
      }
      if (!(sum < kInfinity)) {
        spoil();
        continue;
      }
      stats[0] = most;
      stats[1] = 1 / sum;
      // The score itself, not its difference from the largest: backward compares it with scores
      // made again.
      stats[2] = last_value == -kInfinity ? -kInfinity : s[static_cast<size_t>(last_column)];
      stats[3] = static_cast<T>(tile.k0) + last_column;
      if (lse) lse[r] = most + std::log(sum);
      candidates::store_weights(tile, r, list, [&](size_t i) { return list.value[i] * stats[1]; });
      tile.rows.carry[r] = 1;
    }
  }

  void weights(Tile<T>& tile) const override {
    const D d;
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      const T* stats = tile.stats + r * kStatistics;
      const auto most = hn::Set(d, stats[0]), inverse = hn::Set(d, stats[1]),
                 limit = hn::Set(d, stats[2]);
      const auto last = hn::Set(d, stats[3]);
      for (size_t c = 0; c < candidates::padded<T>(tile.nk); c += N) {
        const auto x = hn::LoadU(d, s + c), position = hn::Iota(d, static_cast<T>(tile.k0 + c));
        const auto tie = hn::And(hn::Eq(x, limit), hn::Le(position, last));
        const auto in = hn::Or(hn::Gt(x, limit), hn::And(tie, hn::Gt(x, hn::Set(d, -kInfinity))));
        if (HWY_LIKELY(hn::AllFalse(d, in))) {
          hn::StoreU(hn::Zero(d), d, s + c);
          continue;
        }
        hn::StoreU(hn::IfThenElseZero(in, hn::Mul(inverse, exp_bounded(d, hn::Sub(x, most)))), d,
                   s + c);
      }
    }
  }

  size_t support_size(const T*, size_t keys) const override { return std::min(keys, k_); }
  T below_support(size_t, const T* stats) const override {
    return std::nextafter(stats[2], -kInfinity);
  }
  // The last of the scores equal to the k-th is known by its position.
  void close_up(const int32_t* columns, size_t n, size_t k0, T* stats) const override {
    const auto last = static_cast<int32_t>(stats[3] - static_cast<T>(k0));
    stats[3] = static_cast<T>(k0) +
               static_cast<T>(std::upper_bound(columns, columns + n, last) - columns - 1);
  }

  // ds = a (dA - sum a dA + d lse)
  void backward(Tile<T>& tile) const override {
    const D d;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* a = tile.s + r * tile.s_stride;
      T* g = tile.ds + r * tile.s_stride;
      const auto term = hn::Set(d, tile.row_term[r] - (tile.d_lse ? tile.d_lse[r] : T(0)));
      for (size_t c = 0; c < candidates::padded<T>(tile.nk); c += N)
        hn::StoreU(hn::Mul(hn::LoadU(d, a + c), hn::Sub(hn::LoadU(d, g + c), term)), d, g + c);
    }
  }

 private:
  // Less than the k-th largest of the n scores, or -infinity: at least k scores are above, or all
  // that are not masked.
  T bound(const T* s, size_t n) const {
    if (k_ >= (n + 3) / 4) return -kInfinity;
    if (k_ <= kGroups / 2) return bound_of_few(s, candidates::padded<T>(n));
    const D d;
    const size_t columns = candidates::padded<T>(n), groups = (2 * k_ + 3 * N - 1) / N * N;
    static thread_local std::vector<T> maxima;
    maxima.assign(groups, -kInfinity);
    for (size_t c = 0; c < columns;) {
      for (size_t g = 0; g < groups && c < columns; g += N, c += N)
        hn::StoreU(hn::Max(hn::LoadU(d, &maxima[g]), hn::LoadU(d, s + c)), d, &maxima[g]);
    }
    std::nth_element(maxima.begin(), maxima.begin() + (k_ - 1), maxima.end(), std::greater<>());
    const T kth = maxima[k_ - 1];
    return kth == -kInfinity ? kth : std::nextafter(kth, -kInfinity);
  }

  // The same for a small k, its groups in registers: halving an interval that holds the k-th
  // largest of their maxima, always with k of them above, comes close enough in a few steps.
  T bound_of_few(const T* s, size_t columns) const {
    const D d;
    hn::Vec<D> most[kVectors];
    for (size_t v = 0; v < kVectors; ++v) most[v] = hn::Set(d, -kInfinity);
    size_t c = 0;
    for (; c + kGroups <= columns; c += kGroups) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) most[v] = hn::Max(most[v], hn::LoadU(d, s + c + v * N));
    }
    for (; c < columns; c += N) most[0] = hn::Max(most[0], hn::LoadU(d, s + c));
    const auto least = hn::Min(hn::Min(most[0], most[1]), hn::Min(most[2], most[3]));
    const auto largest = hn::Max(hn::Max(most[0], most[1]), hn::Max(most[2], most[3]));
    T low = hn::GetLane(hn::MinOfLanes(d, least)), high = hn::GetLane(hn::MaxOfLanes(d, largest));
    if (!(low > -kInfinity)) return -kInfinity;  // masked groups, or NaN
    low = std::nextafter(low, -kInfinity);
    for (int step = 0; step < 6; ++step) {
      const T middle = low + (high - low) / 2;
      size_t above = 0;
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v)
        above += hn::CountTrue(d, hn::Gt(most[v], hn::Set(d, middle)));
      (above >= k_ ? low : high) = middle;
    }
    return low;
  }

  // The k-th largest of the list: the entry that fewer than k exceed, and k or more reach.
  T kth_of(const candidates::List<T>& list) const {
    const D d;
    if (list.n <= kGroups) {
      HWY_ALIGN T copy[kGroups];
      std::fill(copy, copy + kGroups, -kInfinity);
      std::copy_n(list.value.data(), list.n, copy);
      const size_t used = candidates::padded<T>(list.n);
      for (size_t i = 0; i < list.n; ++i) {
        const auto x = hn::Set(d, copy[i]);
        size_t above = 0, reach = 0;
        for (size_t c = 0; c < used; c += N) {
          above += hn::CountTrue(d, hn::Gt(hn::Load(d, copy + c), x));
          reach += hn::CountTrue(d, hn::Ge(hn::Load(d, copy + c), x));
        }
        if (above < k_ && reach >= k_) return copy[i];
      }
    }
    // Many, or NaN among them.
    static thread_local std::vector<T> values;
    values.assign(list.value.begin(), list.value.begin() + list.n);
    std::nth_element(values.begin(), values.begin() + (k_ - 1), values.end(), std::greater<>());
    return values[k_ - 1];
  }

  // Keeps the k largest of the list; says the least of them and the column of its last copy that is
  // kept.
  void choose(candidates::List<T>& list, T* last_value, T* last_column) const {
    if (list.n < k_) return;  // all there are
    const T kth = kth_of(list);
    size_t above = 0;
    for (size_t i = 0; i < list.n; ++i) above += list.value[i] > kth;
    size_t ties = k_ - above, n = 0;
    for (size_t i = 0; i < list.n; ++i) {
      const T x = list.value[i];
      const bool tie = x == kth && ties > 0;
      if (tie) {
        --ties;
        *last_column = static_cast<T>(list.column[i]);
      }
      if (!tie && x <= kth) continue;  // NaN stays, and shows in the sum
      list.value[n] = x;
      list.column[n++] = list.column[i];
    }
    list.n = n;
    *last_value = kth;
  }

  // Differences from the largest score to exponentials, in place; returns their sum.
  static T exponentials(candidates::List<T>& list) {
    const D d;
    std::fill(list.value.begin() + list.n, list.value.begin() + candidates::padded<T>(list.n),
              -kInfinity);
    auto sum = hn::Zero(d);
    for (size_t c = 0; c < candidates::padded<T>(list.n); c += N) {
      const auto x = exp_bounded(d, hn::LoadU(d, &list.value[c]));
      sum = hn::Add(sum, x);
      hn::StoreU(x, d, &list.value[c]);
    }
    return sum_of_lanes(d, sum);
  }

  const size_t k_;
};

}  // namespace top_k

FOVEA_TARGET_FACTORY(NormaliserPointer, make_top_k, top_k::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(NormaliserPointer, make_top_k)
}  // namespace fovea::engine
#endif
