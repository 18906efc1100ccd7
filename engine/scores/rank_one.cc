// e = LeakyReLU(q + k), q and k numbers: graph attention's score (Velickovic et al. 2018), its two
// halves computed by the caller. de/dq = de/dk = 1 or the slope. Lanes run over keys.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/scores/rank_one.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <utility>

#include "engine/registry.h"
#include "engine/simd/export.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace rank_one {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public ScoreStage<T> {
  static constexpr size_t N = HWY_LANES(T);

 public:
  explicit Stage(const StageContext& context)
      : slope_(static_cast<T>(std::get<RankOne>(context.problem.score.kind).negative_slope)) {}

  // Keys side by side, whatever the stride of their rows.
  size_t panel_size() const override { return kPanelKeys; }
  void pack_keys(const T* rows, size_t stride, size_t nk, T* panel) const override {
    for (size_t j = 0; j < kPanelKeys; ++j) panel[j] = j < nk ? rows[j * stride] : T(0);
  }

  void score(Tile<T>& tile) const override {
    const hn::ScalableTag<T> d;
    const auto slope = hn::Set(d, slope_);
    for (size_t i = 0; i < tile.nq; ++i) {
      const auto q = hn::Set(d, tile.q[i * tile.q_stride]);
      T* s = tile.s + i * tile.s_stride;
      for (size_t j = tile.row_begin(i) / N * N; j < tile.row_end(i); j += N) {
        const auto x = hn::Add(q, hn::LoadU(d, tile.k_panel + j));
        hn::StoreU(hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, slope)), d, s + j);
      }
    }
  }

  bool fused_backward() const override { return true; }
  void backward_query(Tile<T>&) const override {}
  void backward_key(Tile<T>&) const override {}
  void backward(Tile<T>& tile, bool first_query, bool first_key, T*) const override {
    const hn::ScalableTag<T> d;
    const auto slope = hn::Set(d, slope_);
    HWY_ALIGN T dk[kMaxKeys + HWY_LANES(T)];
    std::fill_n(dk, (tile.nk + N - 1) / N * N, T(0));
    for (size_t i = 0; i < tile.nq; ++i) {
      T* ds = tile.ds + i * tile.s_stride;
      const size_t begin = tile.row_begin(i) / N * N, end = tile.row_end(i);
      std::fill(ds + begin, ds + std::max(begin, tile.row_begin(i)), T(0));
      std::fill(ds + end, ds + (end + N - 1) / N * N, T(0));
      const auto q = hn::Set(d, tile.q[i * tile.q_stride]);
      auto sum = hn::Zero(d);
      for (size_t j = begin; j < end; j += N) {
        const auto x = hn::Add(q, hn::LoadU(d, tile.k_panel + j));
        const auto g = hn::LoadU(d, ds + j);
        const auto dx = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), g, hn::Mul(g, slope));
        sum = hn::Add(sum, dx);
        hn::Store(hn::Add(hn::Load(d, dk + j), dx), d, dk + j);
      }
      if (!tile.dq) continue;
      T& dq = tile.dq[i * tile.dq_stride];
      dq = (first_query ? T(0) : dq) + sum_of_lanes(d, sum);
    }
    for (size_t j = 0; j < tile.nk && tile.dk; ++j) {
      T& out = tile.dk[j * tile.dk_stride];
      out = (first_key ? T(0) : out) + dk[j];
    }
  }

 private:
  const T slope_;
};

}  // namespace rank_one

FOVEA_TARGET_FACTORY(ScorePointer, make_rank_one, rank_one::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(ScorePointer, make_rank_one)
}  // namespace fovea::engine
#endif
