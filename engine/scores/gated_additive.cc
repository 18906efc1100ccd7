// Gated additive attention (Ilse et al. 2018), of projected queries and keys: with
// [a; b] = q + k, two halves of width E/2,
//
//   e = sum_f w_f tanh(a_f) sigma(b_f).
//
// As in additive.cc nothing is exponentiated for a pair: with A = 1 + exp(2 a) and B = 1 + exp(-b),
// products of numbers made once for each row, tanh(a) = (A - 2) / A and sigma(b) = 1 / B share one
// division. Backward: de/da = w (1 - t^2) s, de/db = w t s (1 - s), de/dw = t s.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/scores/gated_additive.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>

#include "engine/call/parameter.h"
#include "engine/registry.h"
#include "engine/simd/export.h"
#include "engine/simd/math-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace gated_additive {

namespace hn = hwy::HWY_NAMESPACE;

// Entries of rows this small keep A B finite; rows with larger ones are kept as they are and
// marked.
template <class T>
inline constexpr T kLimit = sizeof(T) == 4 ? T(10.5) : T(88);

template <class T>
class Stage final : public ScoreStage<T> {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr size_t N = HWY_LANES(T);

 public:
  explicit Stage(const StageContext& context)
      : half_(context.geometry.query_width / 2),
        padded_((half_ + kRowPadding - 1) / kRowPadding * kRowPadding),
        weight_(std::get<GatedAdditive>(context.problem.score.kind).weight, 1) {
    if (context.gradients)
      weight_.set_gradient(std::get<GatedAdditive>(context.gradients->score.kind).weight);
    padded_weight_.assign(context.geometry.heads * padded_, T(0));
    for (size_t h = 0; h < context.geometry.heads; ++h)
      std::copy_n(weight_.of(h), half_, &padded_weight_[h * padded_]);
  }

  // [exp(2 a) or a][exp(-b) or b][1 when the row is kept raw], each part padded.
  size_t prepared_query_width() const override { return 2 * padded_ + kRowPadding; }
  size_t prepared_key_width() const override { return prepared_query_width(); }
  void prepare_query(size_t, size_t, size_t, size_t n, const T* in, size_t in_stride,
                     T* out) const override {
    for (size_t i = 0; i < n; ++i)
      prepare_row(in + i * in_stride, out + i * prepared_query_width());
  }
  void prepare_key(size_t batch, size_t head, size_t row0, size_t n, const T* in, size_t in_stride,
                   T* out) const override {
    prepare_query(batch, head, row0, n, in, in_stride, out);
  }
  // Gradients of prepared rows are kept as gradients of the rows themselves.
  void unprepare_query(size_t, size_t, size_t, size_t n, const T*, size_t, const T* d_prepared,
                       T* d_in, size_t d_in_stride, T*) const override {
    for (size_t i = 0; i < n; ++i) {
      const T* row = d_prepared + i * prepared_query_width();
      std::copy_n(row, half_, d_in + i * d_in_stride);
      std::copy_n(row + padded_, half_, d_in + i * d_in_stride + half_);
    }
  }
  void unprepare_key(size_t batch, size_t head, size_t row0, size_t n, const T* in,
                     size_t in_stride, const T* d_prepared, T* d_in, size_t d_in_stride,
                     T* partial) const override {
    unprepare_query(batch, head, row0, n, in, in_stride, d_prepared, d_in, d_in_stride, partial);
  }

  void score(Tile<T>& tile) const override {
    const D d;
    const T* w = padded_weight_.data() + tile.head * padded_;
    for (size_t i = 0; i < tile.nq; ++i) {
      const T* q = tile.q + i * tile.q_stride;
      for (size_t j = tile.row_begin(i); j < tile.row_end(i); ++j) {
        const T* k = tile.k + j * tile.k_stride;
        V sum = hn::Zero(d);
        for (size_t e = 0; e < padded_; e += N) {
          V t, s;
          gate(q, k, e, &t, &s);
          sum = hn::MulAdd(hn::LoadU(d, w + e), hn::Mul(t, s), sum);
        }
        tile.s[i * tile.s_stride + j] = sum_of_lanes(d, sum);
      }
    }
  }

  bool fused_backward() const override { return true; }
  void backward_query(Tile<T>&) const override {}
  void backward_key(Tile<T>&) const override {}
  void backward(Tile<T>& tile, bool first_query, bool first_key, T* partial) const override {
    const D d;
    if (first_query && tile.dq) clear(tile.dq, tile.dq_stride, tile.nq);
    if (first_key && tile.dk) clear(tile.dk, tile.dk_stride, tile.nk);
    const T* w = padded_weight_.data() + tile.head * padded_;
    for (size_t e = 0; e < padded_; e += N) {
      const V weight = hn::LoadU(d, w + e);
      V dw = hn::Zero(d);
      for (size_t i = 0; i < tile.nq; ++i) {
        V da_sum = hn::Zero(d), db_sum = hn::Zero(d);
        for (size_t j = tile.row_begin(i); j < tile.row_end(i); ++j) {
          const T de = tile.ds[i * tile.s_stride + j];
          if (de == 0) continue;  // it may have any operands
          V t, s;
          gate(tile.q + i * tile.q_stride, tile.k + j * tile.k_stride, e, &t, &s);
          const V g = hn::Mul(hn::Set(d, de), weight), ts = hn::Mul(t, s);
          const V da = hn::Mul(hn::Mul(g, s), hn::NegMulAdd(t, t, hn::Set(d, T(1))));
          const V db = hn::Mul(hn::Mul(g, ts), hn::Sub(hn::Set(d, T(1)), s));
          da_sum = hn::Add(da_sum, da);
          db_sum = hn::Add(db_sum, db);
          dw = hn::MulAdd(hn::Set(d, de), ts, dw);
          if (tile.dk) add(da, db, tile.dk + j * tile.dk_stride + e);
        }
        if (tile.dq) add(da_sum, db_sum, tile.dq + i * tile.dq_stride + e);
      }
      if (partial) hn::StoreU(hn::Add(hn::LoadU(d, partial + e), dw), d, partial + e);
    }
  }
  size_t partial_size() const override { return weight_.wants_gradient() ? padded_ : 0; }
  void store_parameters(size_t, size_t head, const T* partial) const override {
    weight_.add_to_gradient(head, partial);
  }

 private:
  void prepare_row(const T* in, T* out) const {
    const D d;
    std::fill_n(out, prepared_query_width(), T(0));
    std::copy_n(in, half_, out);
    std::copy_n(in + half_, half_, out + padded_);
    V sizes = hn::Zero(d);
    for (size_t e = 0; e < 2 * padded_; e += N)
      sizes = hn::Max(sizes, hn::Abs(hn::LoadU(d, out + e)));
    out[2 * padded_] = hn::GetLane(hn::MaxOfLanes(d, sizes)) > kLimit<T> ? T(1) : T(0);
    if (out[2 * padded_] != 0) return;
    for (size_t e = 0; e < padded_; e += N) {
      const V a = hn::LoadU(d, out + e), b = hn::LoadU(d, out + padded_ + e);
      hn::StoreU(exp_bounded(d, hn::Add(a, a)), d, out + e);
      hn::StoreU(exp_bounded(d, hn::Neg(b)), d, out + padded_ + e);
    }
  }

  // t = tanh(a), s = sigma(b) for features e, e + 1, ...
  HWY_INLINE void gate(const T* q, const T* k, size_t e, V* t, V* s) const {
    const D d;
    const V one = hn::Set(d, T(1));
    const V qa = hn::LoadU(d, q + e), ka = hn::LoadU(d, k + e);
    const V qb = hn::LoadU(d, q + padded_ + e), kb = hn::LoadU(d, k + padded_ + e);
    const bool q_raw = q[2 * padded_] != 0, k_raw = k[2 * padded_] != 0;
    if (HWY_UNLIKELY(q_raw || k_raw)) {
      const V half = hn::Set(d, T(0.5));
      const V a =
          hn::Add(q_raw ? qa : hn::Mul(half, log(d, qa)), k_raw ? ka : hn::Mul(half, log(d, ka)));
      const V b = hn::Add(q_raw ? qb : hn::Neg(log(d, qb)), k_raw ? kb : hn::Neg(log(d, kb)));
      *t = tanh(d, a);
      *s = sigmoid(d, b);
      return;
    }
    const V a = hn::MulAdd(qa, ka, one), b = hn::MulAdd(qb, kb, one);
    const V inverse = reciprocal(d, hn::Mul(a, b));
    *s = hn::Mul(a, inverse);
    *t = hn::Mul(hn::Mul(hn::MulSub(qa, ka, one), b), inverse);
  }

  void clear(T* rows, size_t stride, size_t n) const {
    for (size_t i = 0; i < n; ++i) std::fill_n(rows + i * stride, prepared_query_width(), T(0));
  }
  HWY_INLINE void add(V da, V db, T* out) const {
    const D d;
    hn::StoreU(hn::Add(hn::LoadU(d, out), da), d, out);
    hn::StoreU(hn::Add(hn::LoadU(d, out + padded_), db), d, out + padded_);
  }

  const size_t half_, padded_;
  Parameter<T> weight_;
  Vector<T> padded_weight_;  // [heads][padded]
};

}  // namespace gated_additive

FOVEA_TARGET_FACTORY(ScorePointer, make_gated_additive, gated_additive::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(ScorePointer, make_gated_additive)
}  // namespace fovea::engine
#endif
