// a_j = 1 / (number of keys the query may see; of a distance kernel, those it is not zero at).
// Scores have no gradient.
#include <cmath>
#include <limits>

#include "engine/registry.h"
#include "engine/simd/export.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/normalisers/uniform.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace uniform {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public NormaliserStage<T> {
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

 public:
  explicit Stage(const StageContext&) {}
  Kind kind() const override { return Kind::kStreaming; }

  void begin(const Tile<T>& tile) const override { std::fill_n(tile.rows.sum, tile.nq, T(0)); }
  void weigh(Tile<T>& tile) const override {
    const hn::ScalableTag<T> d;
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      auto sum = hn::Zero(d);
      for (size_t c = 0; c < tile.nk; c += hn::Lanes(d)) {
        const auto seen = one_where_seen(d, hn::LoadU(d, s + c), T(1));
        sum = hn::Add(sum, seen);
        hn::StoreU(seen, d, s + c);
      }
      tile.rows.sum[r] += hn::GetLane(hn::SumOfLanes(d, sum));
      tile.rows.carry[r] = 1;
    }
  }
  void finish(Tile<T>& tile, T*) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      T* stats = tile.rows.stats + r * kStatistics;
      std::fill_n(stats, kStatistics, T(0));
      stats[0] = tile.rows.sum[r] > 0 ? 1 / tile.rows.sum[r] : T(0);
      tile.rows.carry[r] = stats[0];
    }
  }

  void weights(Tile<T>& tile) const override {
    const hn::ScalableTag<T> d;
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      for (size_t c = 0; c < tile.nk; c += hn::Lanes(d)) {
        hn::StoreU(one_where_seen(d, hn::LoadU(d, s + c), tile.stats[r * kStatistics]), d, s + c);
      }
    }
  }
  void backward(Tile<T>& tile) const override {
    for (size_t r = 0; r < tile.nq; ++r)
      std::fill_n(tile.ds + r * tile.s_stride, tile.padded_keys(), T(0));
  }

 private:
  template <class D>
  static HWY_INLINE hn::Vec<D> one_where_seen(D d, hn::Vec<D> s, T one) {
    return hn::IfThenZeroElse(hn::Eq(s, hn::Set(d, -kInfinity)), hn::Set(d, one));
  }
};

}  // namespace uniform

FOVEA_TARGET_FACTORY(NormaliserPointer, make_uniform, uniform::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(NormaliserPointer, make_uniform)
}  // namespace fovea::engine
#endif
