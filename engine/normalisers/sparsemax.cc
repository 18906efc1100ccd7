// Sparsemax (Martins & Astudillo 2016): the projection of a row onto the simplex,
//
//   a = max(0, e - tau).
//
// No sort: only scores above the largest - 1 can have weight; from these few, Michelot's iteration
// removes what lies under the threshold of the rest until nothing does. Backward on the support S:
// de = dA - mean_S(dA), 0 elsewhere.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/normalisers/sparsemax.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <limits>

#include "engine/normalisers/candidates-inl.h"
#include "engine/registry.h"
#include "engine/simd/export.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace sparsemax {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public NormaliserStage<T> {
  using D = hn::ScalableTag<T>;
  static constexpr size_t N = HWY_LANES(T);
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

 public:
  explicit Stage(const StageContext&) {}

  Kind kind() const override { return Kind::kThreshold; }
  RowTerm row_term() const override { return RowTerm::kRows; }

  // Statistics: the largest score, tau less it, and the number of weights.
  void solve(Tile<T>& tile, T*) const override {
    auto& list = candidates::list_of_this_thread<T>();
    const size_t columns = candidates::padded<T>(tile.nk);
    list.reserve(columns);
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* s = tile.s + r * tile.s_stride;
      T* stats = tile.rows.stats + r * kStatistics;
      std::fill_n(stats, kStatistics, T(0));
      const T most = candidates::largest(s, columns);
      T tau = std::numeric_limits<T>::quiet_NaN();
      if (most != kInfinity) {
        candidates::collect(s, columns, most - 1, most, list);
        tau = threshold(list);
      }
      stats[0] = most;
      stats[1] = tau;
      if (std::isnan(tau) || list.n == 0) {
        stats[0] = std::isnan(tau) ? tau : T(0);
        stats[1] = kInfinity;
        candidates::store_nothing(tile, r, stats[0]);
        continue;
      }
      stats[2] = static_cast<T>(candidates::store_weights(
          tile, r, list, [&](size_t i) { return std::max(T(0), list.value[i] - tau); }));
      tile.rows.carry[r] = 1;
    }
  }

  void weights(Tile<T>& tile) const override {
    const D d;
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      const auto most = hn::Set(d, tile.stats[r * kStatistics]),
                 tau = hn::Set(d, tile.stats[r * kStatistics + 1]);
      for (size_t c = 0; c < candidates::padded<T>(tile.nk); c += N) {
        const auto x = hn::Sub(hn::Sub(hn::LoadU(d, s + c), most), tau);
        hn::StoreU(hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), x), d, s + c);
      }
    }
  }

  size_t support_size(const T* stats, size_t) const override {
    return static_cast<size_t>(stats[2]);
  }
  T below_support(size_t, const T* stats) const override {
    return candidates::below_threshold(stats[0], stats[1]);
  }

  void row_terms(const Tile<T>& tile, T* terms) const override {
    const D d;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T *a = tile.s + r * tile.s_stride, *g = tile.ds + r * tile.s_stride;
      auto sum = hn::Zero(d), count = hn::Zero(d);
      for (size_t c = 0; c < candidates::padded<T>(tile.nk); c += N) {
        const auto in = hn::Gt(hn::LoadU(d, a + c), hn::Zero(d));
        sum = hn::Add(sum, hn::IfThenElseZero(in, hn::LoadU(d, g + c)));
        count = hn::Add(count, hn::IfThenElseZero(in, hn::Set(d, T(1))));
      }
      terms[r] = sum_of_lanes(d, sum) / std::max(T(1), sum_of_lanes(d, count));
    }
  }

  void backward(Tile<T>& tile) const override {
    const D d;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* a = tile.s + r * tile.s_stride;
      T* g = tile.ds + r * tile.s_stride;
      const auto mean = hn::Set(d, tile.row_term[r]);
      for (size_t c = 0; c < candidates::padded<T>(tile.nk); c += N) {
        const auto in = hn::Gt(hn::LoadU(d, a + c), hn::Zero(d));
        hn::StoreU(hn::IfThenElseZero(in, hn::Sub(hn::LoadU(d, g + c), mean)), d, g + c);
      }
    }
  }

 private:
  // tau of the scores in the list, which it leaves as it was; NaN if one of them is.
  static T threshold(const candidates::List<T>& list) {
    double tau = -1;  // less the largest score, whose weight is at most 1
    for (size_t support = list.n + 1;;) {
      double sum = 0;
      size_t n = 0;
      for (size_t i = 0; i < list.n; ++i) {
        const double x = list.value[i];
        const bool in = !(x <= tau);
        sum += in ? x : 0;
        n += in;
      }
      if (n == support || n == 0) return static_cast<T>(tau);
      support = n;
      tau = (sum - 1) / static_cast<double>(n);
      if (std::isnan(tau)) return std::numeric_limits<T>::quiet_NaN();
    }
  }
};

}  // namespace sparsemax

FOVEA_TARGET_FACTORY(NormaliserPointer, make_sparsemax, sparsemax::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(NormaliserPointer, make_sparsemax)
}  // namespace fovea::engine
#endif
