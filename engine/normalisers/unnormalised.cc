// a_j = e_j: the score itself (for a distance kernel, its value).
#include <cmath>
#include <limits>

#include "engine/registry.h"
#include "engine/simd/export.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/normalisers/unnormalised.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace unnormalised {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public NormaliserStage<T> {
  static constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

 public:
  explicit Stage(const StageContext&) {}
  Kind kind() const override { return Kind::kStreaming; }
  Face face() const override { return Face::kValue; }

  // The sum of magnitudes shows a score that is not finite.
  void begin(const Tile<T>& tile) const override { std::fill_n(tile.rows.sum, tile.nq, T(0)); }
  void weigh(Tile<T>& tile) const override {
    const hn::ScalableTag<T> d;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* s = tile.s + r * tile.s_stride;
      auto sum = hn::Zero(d);
      for (size_t c = 0; c < tile.nk; c += hn::Lanes(d))
        sum = hn::Add(sum, hn::Abs(hn::LoadU(d, s + c)));
      tile.rows.sum[r] += hn::GetLane(hn::SumOfLanes(d, sum));
      tile.rows.carry[r] = 1;
    }
  }
  void finish(Tile<T>& tile, T*) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      T* stats = tile.rows.stats + r * kStatistics;
      std::fill_n(stats, kStatistics, T(0));
      const bool spoiled = !std::isfinite(tile.rows.sum[r]);
      if (spoiled) stats[0] = kNaN;
      tile.rows.carry[r] = spoiled ? kNaN : T(1);
    }
  }
  void weights(Tile<T>&) const override {}
  void backward(Tile<T>&) const override {}  // da/de = 1
};

}  // namespace unnormalised

FOVEA_TARGET_FACTORY(NormaliserPointer, make_unnormalised, unnormalised::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(NormaliserPointer, make_unnormalised)
}  // namespace fovea::engine
#endif
