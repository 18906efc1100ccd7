// e' = cap tanh(e / cap); de = de' (1 - (e' / cap)^2). A key that is masked (-infinity) stays so.
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
    const auto cap = hn::Set(d, cap_), inverse = hn::Set(d, 1 / cap_), lowest = hn::Neg(hn::Inf(d));
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      for (size_t c = tile.row_begin(r) / N * N; c < tile.row_end(r); c += N) {
        const auto x = hn::LoadU(d, s + c);
        const auto t = tanh(d, hn::Mul(x, inverse));
        hn::StoreU(hn::IfThenElse(hn::Eq(x, lowest), x, hn::Mul(cap, t)), d, s + c);
        if (saved) hn::StoreU(t, d, saved + r * tile.s_stride + c);
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
        hn::StoreU(hn::IfThenElseZero(counts, hn::Mul(g, hn::NegMulAdd(t, t, hn::Set(d, T(1))))), d, ds + c);
      }
    }
  }

 private:
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
