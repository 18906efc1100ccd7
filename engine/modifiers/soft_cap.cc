// e' = cap tanh(e / cap); de = de' (1 - (e' / cap)^2). A key that is masked (-infinity) stays so.
//
// Most scores are far below the cap, where a short polynomial in e^2 is exact enough: four vectors
// that are all there take eight instructions each instead of thirty.
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
      : cap_(static_cast<T>(std::get<SoftCap>(context.problem.score.modifiers[index]).cap)) {
    // tanh(t) / t = 1 + t^2 (c0 + c1 t^2 + ...), t^2 = (e / cap)^2 <= 1/4: minimax, 1.4e-8.
    const double square = 1 / (static_cast<double>(cap_) * static_cast<double>(cap_));
    double power = square;
    for (size_t i = 0; i < kTerms; ++i, power *= square)
      coefficient_[i] = static_cast<T>(kTanh[i] * power);
    small_ = static_cast<T>(0.25 / square);
  }

  bool keeps_tile() const override { return true; }  // of tanh(e / cap)

  void apply(Tile<T>& tile, const T*, T* saved) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      const size_t begin = tile.row_begin(r) / N * N, end = tile.row_end(r);
      size_t c = begin;
      for (; c + 4 * N <= end; c += 4 * N) cap_vectors<4>(s + c);
      for (; c < end; c += N) cap_vectors<1>(s + c);
      if (saved) keep(s, begin, end, saved + r * tile.s_stride);
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
  template <size_t kVectors>
  HWY_INLINE void cap_vectors(T* HWY_RESTRICT s) const {
    const D d;
    hn::Vec<D> x[kVectors], square[kVectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectors; ++i) {
      x[i] = hn::LoadU(d, s + i * N);
      square[i] = hn::Mul(x[i], x[i]);
    }
    auto small = hn::Le(square[0], hn::Set(d, small_));
#pragma GCC unroll 4
    for (size_t i = 1; i < kVectors; ++i)
      small = hn::And(small, hn::Le(square[i], hn::Set(d, small_)));
    const bool all_small = sizeof(T) == 4 && hn::AllTrue(d, small);
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectors; ++i) {
      if (HWY_LIKELY(all_small))
        hn::StoreU(near_zero(x[i], square[i]), d, s + i * N);
      else
        hn::StoreU(capped(x[i], square[i]), d, s + i * N);
    }
  }
  // Lane by lane: a score does not depend on its neighbours.
  HWY_INLINE hn::Vec<D> capped(hn::Vec<D> x, hn::Vec<D> square) const {
    const D d;
    const auto t = hn::Mul(x, hn::Set(d, 1 / cap_));
    const auto anywhere =
        hn::IfThenElse(hn::Eq(x, hn::Neg(hn::Inf(d))), x, hn::Mul(hn::Set(d, cap_), tanh(d, t)));
    if constexpr (sizeof(T) == 8) return anywhere;
    return hn::IfThenElse(hn::Le(square, hn::Set(d, small_)), near_zero(x, square), anywhere);
  }
  HWY_INLINE hn::Vec<D> near_zero(hn::Vec<D> x, hn::Vec<D> square) const {
    const D d;
    auto sum = hn::Set(d, coefficient_[kTerms - 1]);
    for (size_t i = kTerms - 1; i > 0; --i)
      sum = hn::MulAdd(sum, square, hn::Set(d, coefficient_[i - 1]));
    return hn::MulAdd(hn::Mul(x, square), sum, x);
  }
  void keep(const T* s, size_t begin, size_t end, T* saved) const {
    const D d;
    const auto inverse = hn::Set(d, 1 / cap_);
    for (size_t c = begin; c < end; c += N)
      hn::StoreU(hn::Mul(hn::LoadU(d, s + c), inverse), d, saved + c);
  }

  static constexpr size_t kTerms = 4;
  static constexpr double kTanh[kTerms] = {-0.333331496, 0.133259863, -0.0530529059, 0.0172569025};
  const T cap_;
  T coefficient_[kTerms], small_;  // times powers of 1 / cap^2; e^2 up to which they serve
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
