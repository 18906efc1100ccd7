// e'_ij = e_ij - m_h |i - j| (Press et al. 2022); dm_h = -sum de_ij |i - j|.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/modifiers/alibi.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "engine/call/parameter.h"
#include "engine/registry.h"
#include "engine/simd/export.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace alibi {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public ModifierStage<T> {
  using D = hn::ScalableTag<T>;
  static constexpr size_t N = HWY_LANES(T);

 public:
  Stage(const StageContext& context, size_t index)
      : slopes_(std::get<Alibi>(context.problem.score.modifiers[index]).slopes, 0) {
    if (context.gradients)
      slopes_.set_gradient(std::get<Alibi>(context.gradients->score.modifiers[index]).slopes);
  }

  void apply(Tile<T>& tile, const T*, T*) const override {
    const D d;
    const auto slope = hn::Set(d, *slopes_.of(tile.head));
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      const size_t begin = tile.row_begin(r) / N * N, end = tile.row_end(r);
      if (tile.key_index != nullptr) {
        for (size_t c = begin; c < end; c += N)
          hn::StoreU(hn::NegMulAdd(slope, distance(tile, r, c), hn::LoadU(d, s + c)), d, s + c);
        continue;
      }
      // Whole numbers: a step of N is exact.
      auto position =
          hn::Iota(d, static_cast<T>(static_cast<int64_t>(tile.k0 + begin) - tile.position_at(r)));
      const auto step = hn::Set(d, static_cast<T>(N));
      for (size_t c = begin; c < end; c += N) {
        hn::StoreU(hn::NegMulAdd(slope, hn::Abs(position), hn::LoadU(d, s + c)), d, s + c);
        position = hn::Add(position, step);
      }
    }
  }

  // -m |j - i| depends on j - i alone: one list serves every row, each starting one element before
  // the row above.
  size_t row_scratch() const override { return (kMaxQueries + kMaxKeys + N) / kMaxQueries + 1; }
  Addend<T> addend(const Tile<T>& tile, T* scratch) const override {
    if (tile.key_index || tile.query_index || tile.nk > kMaxKeys) return {};
    const D d;
    const auto slope = hn::Set(d, -*slopes_.of(tile.head));
    const int64_t first = static_cast<int64_t>(tile.k0) - tile.position_at(tile.nq - 1);
    for (size_t i = 0; i < tile.nq - 1 + tile.nk; i += N) {
      hn::StoreU(
          hn::Mul(slope, hn::Abs(hn::Iota(d, static_cast<T>(first + static_cast<int64_t>(i))))), d,
          scratch + i);
    }
    return {scratch + (tile.nq - 1), -1};
  }

  void backward(Tile<T>& tile, T*, const T*, T* partial) const override {
    if (!partial) return;
    const D d;
    auto sum = hn::Zero(d);
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* ds = tile.ds + r * tile.s_stride;
      const size_t begin = tile.row_begin(r), end = tile.row_end(r);
      for (size_t c = begin; c < end; c += N) {
        const auto g = hn::IfThenElseZero(hn::FirstN(d, end - c), hn::LoadU(d, ds + c));
        sum = hn::NegMulAdd(g, distance(tile, r, c), sum);
      }
    }
    *partial += sum_of_lanes(d, sum);
  }
  size_t partial_size() const override { return slopes_.wants_gradient() ? 1 : 0; }
  void store_parameters(size_t, size_t head, const T* partial) const override {
    slopes_.add_to_gradient(head, partial);
  }

 private:
  // |i - j| for the keys of columns c, c + 1, ...
  HWY_INLINE hn::Vec<D> distance(const Tile<T>& tile, size_t r, size_t c) const {
    const D d;
    const int64_t i = tile.position_at(r);
    if (HWY_UNLIKELY(tile.key_index != nullptr)) {
      HWY_ALIGN T away[N];  // subtracted as whole numbers: exact wherever the query stands
      for (size_t lane = 0; lane < N; ++lane)
        away[lane] = c + lane < tile.nk ? static_cast<T>(tile.key_index[c + lane] - i) : T(0);
      return hn::Abs(hn::Load(d, away));
    }
    return hn::Abs(hn::Iota(d, static_cast<T>(static_cast<int64_t>(tile.k0 + c) - i)));
  }

  Parameter<T> slopes_;
};

}  // namespace alibi

FOVEA_TARGET_MODIFIER_FACTORY(make_alibi, alibi::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_MODIFIER_FACTORY(make_alibi)
}  // namespace fovea::engine
#endif
