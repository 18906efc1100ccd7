// e' = cap tanh(e / cap); de = de' (1 - (e' / cap)^2). A key that is masked (-infinity) stays so.
//
// Scores are mostly well under the cap, where a short polynomial in (e / cap)^2 does: a vector that
// lies there altogether takes ten instructions instead of thirty.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/modifiers/soft_cap.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "engine/registry.h"
#include "engine/simd/export.h"
#include "engine/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace soft_cap {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public ModifierStage<T> {
  using D = hn::ScalableTag<T>;
  static constexpr size_t N = HWY_LANES(T);

 public:
  Stage(const StageContext& context, size_t index)
      : cap_(static_cast<T>(std::get<SoftCap>(context.problem.score.modifiers[index]).cap)) {}

  bool keeps_tile() const override { return true; }  // of tanh(e / cap)

  void apply(Tile<T>& tile, const T*, T* saved) const override {
    const D d;
    const auto inverse = hn::Set(d, 1 / cap_);
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      for (size_t c = tile.row_begin(r) / N * N; c < tile.row_end(r); c += N) {
        const auto y = capped(hn::LoadU(d, s + c));
        hn::StoreU(y, d, s + c);
        if (saved) hn::StoreU(hn::Mul(y, inverse), d, saved + r * tile.s_stride + c);
      }
    }
  }

  void backward(Tile<T>& tile, T*, const T* saved, T*) const override {
    const D d;
    for (size_t r = 0; r < tile.nq; ++r) {
      T* ds = tile.ds + r * tile.s_stride;
      const T* kept = saved + r * tile.s_stride;
      for (size_t c = tile.row_begin(r) / N * N; c < tile.row_end(r); c += N) {
        const auto g = hn::LoadU(d, ds + c), t = hn::LoadU(d, kept + c);
        const auto counts = hn::Ne(g, hn::Zero(d));  // places that do not may hold NaN
        hn::StoreU(hn::IfThenElseZero(counts, hn::Mul(g, hn::NegMulAdd(t, t, hn::Set(d, T(1))))), d,
                   ds + c);
      }
    }
  }

 private:
  HWY_INLINE hn::Vec<D> capped(hn::Vec<D> x) const {
    const D d;
    const auto inverse = hn::Set(d, 1 / cap_);
    const auto t = hn::Mul(x, inverse);
    if constexpr (sizeof(T) == 4) {
      const auto z = hn::Mul(t, t);
      const auto small = hn::Le(z, hn::Set(d, kSmall));
      const auto y = near_zero(x, z);
      if (HWY_LIKELY(hn::AllTrue(d, small))) return y;
      return hn::IfThenElse(
          small, y, anywhere(x, t));  // lane by lane: a score does not depend on its neighbours
    } else {
      return anywhere(x, t);
    }
  }
  // tanh(t) / t = 1 + z Q(z), z = t^2 <= kSmall: minimax, 1.7e-8 relative.
  static constexpr float kSmall = 0.5f;
  static HWY_INLINE hn::Vec<D> near_zero(hn::Vec<D> x, hn::Vec<D> z) {
    const D d;
    auto q = hn::Set(d, T(-0.0050856872));
    for (double c : {0.020034291, -0.053537466, 0.13328803, -0.33333176})
      q = hn::MulAdd(q, z, hn::Set(d, static_cast<T>(c)));
    return hn::MulAdd(hn::Mul(x, z), q, x);
  }
  HWY_INLINE hn::Vec<D> anywhere(hn::Vec<D> x, hn::Vec<D> t) const {
    const D d;
    return hn::IfThenElse(hn::Eq(x, hn::Neg(hn::Inf(d))), x, hn::Mul(hn::Set(d, cap_), tanh(d, t)));
  }

  const T cap_;
};

}  // namespace soft_cap

FOVEA_TARGET_MODIFIER_FACTORY(make_soft_cap, soft_cap::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_MODIFIER_FACTORY(make_soft_cap)
}  // namespace fovea::engine
#endif
