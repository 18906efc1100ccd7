// Additive attention (Bahdanau et al. 2015), of projected queries and keys:
//
//   e_ij = sum_f w_f tanh(q_if + k_jf),
//   e_ij = sum_f w_f LeakyReLU(q_if + k_jf)   for GATv2 (Brody et al. 2022).
//
// No tanh is computed for a pair: u = exp(2q) and v = exp(2k) are computed once for each row, and
// tanh(q + k) = 1 - 2r, r = 1 / (1 + uv). Four features share one division, two if a row has large
// entries (additive-inl.h).
// Backward: de/dq = de/dk = 4 w r (1 - r), de/dw = 1 - 2r. Lanes run over features, so that every
// sum over keys or queries stays in registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/scores/additive.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/call/parameter.h"
#include "engine/registry.h"
#include "engine/scores/additive-inl.h"
#include "engine/simd/export.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace additive {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public ScoreStage<T> {
  using D = hn::ScalableTag<T>;
  static constexpr size_t N = HWY_LANES(T);

 public:
  explicit Stage(const StageContext& context)
      : width_(context.geometry.query_width), padded_((width_ + 15) / 16 * 16) {
    const Additive& choice = std::get<Additive>(context.problem.score.kind);
    tanh_ = choice.activation == choice::Activation::kTanh;
    slope_ = static_cast<T>(choice.negative_slope);
    weight_ = Parameter<T>(choice.weight, 1);
    if (context.gradients) {
      weight_.set_gradient(std::get<Additive>(context.gradients->score.kind).weight);
    }
    const size_t heads = context.geometry.heads;
    padded_weight_.assign(heads * padded_, T(0));
    base_.assign(heads, T(0));
    for (size_t h = 0; h < heads; ++h) {
      const T factor = tanh_ ? Tanh<D, kPlain>::kScoreFactor : Leaky<D>::kScoreFactor;
      for (size_t e = 0; e < width_; ++e)
        padded_weight_[h * padded_ + e] = factor * weight_.of(h)[e];
      double sum = 0;
      for (size_t e = 0; e < width_; ++e) sum += weight_.of(h)[e];
      if (tanh_) base_[h] = static_cast<T>(sum);
    }
  }

  size_t prepared_query_width() const override { return padded_ + kClassPadding; }
  size_t prepared_key_width() const override { return padded_ + kClassPadding; }
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
    for (size_t i = 0; i < n; ++i)
      std::copy_n(d_prepared + i * prepared_query_width(), width_, d_in + i * d_in_stride);
  }
  void unprepare_key(size_t batch, size_t head, size_t row0, size_t n, const T* in,
                     size_t in_stride, const T* d_prepared, T* d_in, size_t d_in_stride,
                     T* partial) const override {
    unprepare_query(batch, head, row0, n, in, in_stride, d_prepared, d_in, d_in_stride, partial);
  }

  void score(Tile<T>& tile) const override { score_tile(form(tile.head), tile); }

  bool fused_backward() const override { return true; }
  void backward_query(Tile<T>& tile) const override {
    T* const dk = std::exchange(tile.dk, nullptr);
    backward(tile, tile.first, false, nullptr);
    tile.dk = dk;
  }
  void backward_key(Tile<T>& tile) const override {
    T* const dq = std::exchange(tile.dq, nullptr);
    backward(tile, false, tile.first, nullptr);
    tile.dq = dq;
  }
  void backward(Tile<T>& tile, bool first_query, bool first_key, T* partial) const override {
    backward_tile(form(tile.head), tile, first_query, first_key, partial);
  }
  size_t partial_size() const override { return weight_.wants_gradient() ? padded_ : 0; }
  void store_parameters(size_t, size_t head, const T* partial) const override {
    weight_.add_to_gradient(head, partial);
  }

 private:
  void prepare_row(const T* in, T* out) const {
    const D d;
    std::fill(out + width_, out + padded_ + kClassPadding, T(0));
    const bool whole = width_ == padded_;  // then the row is read where it lies
    if (!tanh_ || !whole) std::copy_n(in, width_, out);
    if (!tanh_) return;
    const T* from = whole ? in : out;
    auto sizes = hn::Zero(d);
    for (size_t e = 0; e < padded_; e += N) sizes = hn::Max(sizes, hn::Abs(hn::LoadU(d, from + e)));
    const T largest = hn::GetLane(hn::MaxOfLanes(d, sizes));
    if (largest > kClampedLimit<T>) {
      out[padded_] = kRaw;
      if (whole) std::copy_n(in, width_, out);
      return;
    }
    out[padded_] = largest > kPlainLimit<T> ? kClamped : largest > kSmallLimit<T> ? kPlain : kSmall;
    for (size_t e = 0; e < padded_; e += N) {
      const auto x = hn::LoadU(d, from + e);
      hn::StoreU(exp_bounded(d, hn::Add(x, x)), d,
                 out + e);  // padding becomes 1, and meets weight 0
    }
  }

  Form<T> form(size_t head) const {
    return {tanh_, slope_, width_, padded_, padded_weight_.data() + head * padded_, base_[head]};
  }

  size_t width_, padded_;
  bool tanh_ = true;
  T slope_ = 0;
  Parameter<T> weight_;
  Vector<T> padded_weight_;  // [heads][padded], times kScoreFactor
  Vector<T> base_;           // [heads]: the sum of weights, for tanh
};

}  // namespace additive

FOVEA_TARGET_FACTORY(ScorePointer, make_additive, additive::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(ScorePointer, make_additive)
}  // namespace fovea::engine
#endif
