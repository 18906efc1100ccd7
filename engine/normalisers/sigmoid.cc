// a_j = 1 / (1 + exp(-e_j)): each weight depends on its own score alone.
#include <cmath>
#include <limits>

#include "engine/registry.h"
#include "engine/simd/export.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/normalisers/sigmoid.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace sigmoid_weights {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public NormaliserStage<T> {
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

 public:
  explicit Stage(const StageContext&) {}
  Kind kind() const override { return Kind::kStreaming; }

  void begin(const Tile<T>& tile) const override {
    std::fill_n(tile.rows.sum, tile.nq, T(0));
    std::fill_n(tile.rows.maximum, tile.nq, -kInfinity);
  }
  void weigh(Tile<T>& tile) const override {
    const hn::ScalableTag<T> d;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* s = tile.s + r * tile.s_stride;
      auto top = hn::Set(d, -kInfinity), poison = hn::Zero(d);
      for (size_t c = 0; c < tile.nk; c += hn::Lanes(d)) {
        const auto x = hn::LoadU(d, s + c);
        top = hn::Max(top, x);
        poison = hn::Add(poison, hn::IfThenElse(hn::Eq(x, x), hn::Zero(d),
                                                x));  // NaN is the one that is not itself
      }
      tile.rows.maximum[r] = std::max(tile.rows.maximum[r], hn::GetLane(hn::MaxOfLanes(d, top)));
      tile.rows.sum[r] += hn::GetLane(hn::SumOfLanes(d, poison));
      tile.rows.carry[r] = 1;
    }
    weights(tile);
  }
  void finish(Tile<T>& tile, T*) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      T* stats = tile.rows.stats + r * kStatistics;
      std::fill_n(stats, kStatistics, T(0));
      const bool spoiled = std::isnan(tile.rows.sum[r]) || tile.rows.maximum[r] == kInfinity;
      if (spoiled) stats[0] = kNaN;
      tile.rows.carry[r] = spoiled ? kNaN : tile.rows.maximum[r] == -kInfinity ? T(0) : T(1);
    }
  }

  void weights(Tile<T>& tile) const override {
    const hn::ScalableTag<T> d;
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      for (size_t c = 0; c < tile.nk; c += hn::Lanes(d)) {
        hn::StoreU(sigmoid(d, hn::LoadU(d, s + c)), d, s + c);
      }
    }
  }
  // de = a (1 - a) dA
  void backward(Tile<T>& tile) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* a = tile.s + r * tile.s_stride;
      T* ds = tile.ds + r * tile.s_stride;
      for (size_t c = 0; c < tile.nk; ++c) ds[c] *= a[c] * (1 - a[c]);
    }
  }
};

}  // namespace sigmoid_weights

FOVEA_TARGET_FACTORY(NormaliserPointer, make_sigmoid, sigmoid_weights::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(NormaliserPointer, make_sigmoid)
}  // namespace fovea::engine
#endif
