// a_j = K_j / sum_k K_k, by value: K may be negative (Silverman's) or zero. Positive kernels of
// infinite support come as logarithms and are Softmax's (see face_of). A sum of exactly zero has no
// ratio: the row counts as empty.
#include <cmath>
#include <limits>

#include "engine/registry.h"
#include "engine/simd/export.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/normalisers/kernel_ratio.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace kernel_ratio {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public NormaliserStage<T> {
  static constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

 public:
  explicit Stage(const StageContext&) {}
  Kind kind() const override { return Kind::kStreaming; }
  Face face() const override { return Face::kValue; }
  RowTerm row_term() const override { return RowTerm::kOutput; }

  void begin(const Tile<T>& tile) const override { std::fill_n(tile.rows.sum, tile.nq, T(0)); }
  void weigh(Tile<T>& tile) const override {
    const hn::ScalableTag<T> d;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* s = tile.s + r * tile.s_stride;
      auto sum = hn::Zero(d);
      for (size_t c = 0; c < tile.nk; c += hn::Lanes(d)) sum = hn::Add(sum, hn::LoadU(d, s + c));
      tile.rows.sum[r] += hn::GetLane(hn::SumOfLanes(d, sum));
      tile.rows.carry[r] = 1;
    }
  }
  void finish(Tile<T>& tile, T*) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      const T sum = tile.rows.sum[r];
      T* stats = tile.rows.stats + r * kStatistics;
      std::fill_n(stats, kStatistics, T(0));
      // No neighbour, or a sum so small that its reciprocal is no number: an empty row.
      const bool weighs = std::fabs(sum) >= std::numeric_limits<T>::min();
      stats[0] = !std::isfinite(sum) ? kNaN : weighs ? 1 / sum : T(0);
      tile.rows.carry[r] = stats[0];
    }
  }

  void weights(Tile<T>& tile) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      const T inverse = tile.stats[r * kStatistics];
      for (size_t c = 0; c < tile.nk; ++c) s[c] *= inverse;
    }
  }
  // dK = (dA - sum a dA) / sum K
  void backward(Tile<T>& tile) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      T* ds = tile.ds + r * tile.s_stride;
      const T inverse = tile.stats[r * kStatistics], term = tile.row_term[r];
      for (size_t c = 0; c < tile.nk; ++c) ds[c] = (ds[c] - term) * inverse;
    }
  }
};

}  // namespace kernel_ratio

FOVEA_TARGET_FACTORY(NormaliserPointer, make_kernel_ratio, kernel_ratio::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(NormaliserPointer, make_kernel_ratio)
}  // namespace fovea::engine
#endif
