// Additive attention (Bahdanau et al. 2015), query and key arriving projected:
//
//   e_ij = sum_f w_f tanh(q_if + k_jf)     or, for GATv2 (Brody et al. 2022),     sum_f w_f
//   LeakyReLU(q_if + k_jf).
//
// No tanh is computed for a pair: with u = exp(2q) and v = exp(2k), made once for each row, tanh(q
// + k) = 1 - 2r, r = 1 / (1 + uv), and four features share one division (two where they are large).
// Backward: de/dq = de/dk = 4 w r (1 - r), de/dw = 1 - 2r. Lanes run over features, so that every
// sum over keys or queries stays in registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/scores/additive.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/parameter.h"
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

  void score(Tile<T>& tile) const override {
    with_activation(tile, [&](auto f) HWY_ATTR { score_rows(tile, f); });
  }

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
    with_activation(
        tile, [&](auto f) HWY_ATTR { backward_tile(tile, first_query, first_key, partial, f); });
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

  template <class Body>
  void with_activation(const Tile<T>& tile, const Body& body) const {
    if (!tanh_) return body(Leaky<D>{slope_});
    switch (row_class(tile)) {
      case kSmall:
        return body(Tanh<D, kSmall>{});
      case kPlain:
        return body(Tanh<D, kPlain>{});
      case kClamped:
        return body(Tanh<D, kClamped>{});
      default:
        return body(Tanh<D, kRaw>{});
    }
  }
  RowClass row_class(const Tile<T>& tile) const {
    T most = kSmall;
    for (size_t i = 0; i < tile.nq; ++i) most = std::max(most, tile.q[i * tile.q_stride + padded_]);
    for (size_t j = 0; j < tile.nk; ++j) most = std::max(most, tile.k[j * tile.k_stride + padded_]);
    return static_cast<RowClass>(most);
  }

  template <class Activation>
  void score_rows(Tile<T>& tile, Activation f) const {
    const D d;
    const T* w = padded_weight_.data() + tile.head * padded_;
    // Key rows of one block stay in L1 (16 KB) while all queries pass.
    const size_t block = std::max<size_t>(8, 16384 / sizeof(T) / padded_ / 8 * 8);
    for (size_t j0 = 0; j0 < tile.nk; j0 += block) {
      for (size_t i = 0; i < tile.nq; ++i) {
        const T* u = tile.q + i * tile.q_stride;
        f.query_is_raw = u[padded_] == kRaw;
        const size_t end = std::min({j0 + block, tile.nk, tile.row_end(i)});
        for (size_t j = std::max(j0, tile.row_begin(i)); j < end;) {
          const T* v = tile.k + j * tile.k_stride;
          T* scores = tile.s + i * tile.s_stride + j;
          const auto run = [&]<size_t kKeys>() HWY_ATTR {
            score_keys<D, Activation, kKeys>(d, f, u, v, tile.k_stride, w, padded_,
                                             base_[tile.head], scores);
            j += kKeys;
          };
          if constexpr (std::is_same_v<Activation, Tanh<D, kRaw>>) {
            f.key_is_raw = v[padded_] == kRaw;
            run.template operator()<1>();
          } else if (end - j >= 8) {
            run.template operator()<8>();
          } else if (end - j >= 4) {
            run.template operator()<4>();
          } else if (end - j >= 2) {
            run.template operator()<2>();
          } else {
            run.template operator()<1>();
          }
        }
      }
    }
  }

  template <class Activation>
  void backward_tile(Tile<T>& tile, bool first_query, bool first_key, T* partial,
                     Activation f) const {
    const D d;
    if (tile.masked) clear_masked(tile);
    HWY_ALIGN T dk[kMaxKeys * N];
    HWY_ALIGN T dq[4 * N];
    HWY_ALIGN T factor[N];
    const T* w = padded_weight_.data() + tile.head * padded_;
    for (size_t e = 0; e < padded_; e += N) {
      std::fill_n(dk, tile.nk * N, T(0));
      auto weight_sum = hn::Zero(d);
      hn::Store(hn::Mul(hn::LoadU(d, w + e), hn::Set(d, Activation::kInputFactor)), d, factor);
      for (size_t i = 0; i < tile.nq;) {
        const bool alone = !tile.finite || std::is_same_v<Activation, Tanh<D, kRaw>>;
        const size_t rows = strip_rows(tile, i, alone);
        Strip<D> strip{.u = tile.q + i * tile.q_stride + e,
                       .u_stride = tile.q_stride,
                       .v = tile.k + e,
                       .v_stride = tile.k_stride,
                       .de = tile.ds + i * tile.s_stride,
                       .de_stride = tile.s_stride,
                       .begin = tile.nk,
                       .end = 0,
                       .dq = dq,
                       .dk = dk};
        for (size_t r = i; r < i + rows; ++r) {
          strip.begin = std::min(strip.begin, tile.row_begin(r));
          strip.end = std::max(strip.end, tile.row_end(r));
        }
        run_strip(tile, f, strip, rows, i, &weight_sum);
        for (size_t r = 0; r < rows && tile.dq != nullptr; ++r) {
          T* out = tile.dq + (i + r) * tile.dq_stride + e;
          const auto x = hn::Mul(hn::Load(d, dq + r * N), hn::Load(d, factor));
          hn::StoreU(first_query ? x : hn::Add(hn::LoadU(d, out), x), d, out);
        }
        i += rows;
      }
      for (size_t j = 0; j < tile.nk && tile.dk != nullptr; ++j) {
        T* out = tile.dk + j * tile.dk_stride + e;
        const auto x = hn::Mul(hn::Load(d, dk + j * N), hn::Load(d, factor));
        hn::StoreU(first_key ? x : hn::Add(hn::LoadU(d, out), x), d, out);
      }
      if (partial != nullptr) {
        const auto x = hn::Mul(weight_sum, hn::Set(d, Activation::kScoreFactor));
        hn::StoreU(hn::Add(hn::LoadU(d, partial + e), x), d, partial + e);
      }
    }
    if (partial != nullptr && tanh_) add_total(tile, partial);
  }

  // Four rows at a time, then two, then one; one where rows differ in class, or where NaN must not
  // pass from one row to another through a shared division.
  static size_t strip_rows(const Tile<T>& tile, size_t i, bool alone) {
    const size_t left = tile.nq - i;
    return alone ? 1 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
  }

  template <class Activation>
  void run_strip(const Tile<T>& tile, Activation& f, Strip<D> strip, size_t rows, size_t i,
                 hn::Vec<D>* weight_sum) const {
    const D d;
    if constexpr (std::is_same_v<Activation, Tanh<D, kRaw>>) {
      // Key rows may differ in class: runs of one class.
      f.query_is_raw = tile.q[i * tile.q_stride + padded_] == kRaw;
      const size_t end = strip.end;
      auto total = hn::Zero(d);
      auto sum_dq = hn::Zero(d);
      for (size_t j = strip.begin; j < end; ++j) {
        f.key_is_raw = tile.k[j * tile.k_stride + padded_] == kRaw;
        strip.begin = j;
        strip.end = j + 1;
        backward_strip<D, Activation, 1, false>(d, f, strip, &total);
        sum_dq = hn::Add(sum_dq, hn::Load(d, strip.dq));
      }
      hn::Store(sum_dq, d, strip.dq);
      *weight_sum = hn::Add(*weight_sum, total);
    } else if (!tile.finite) {
      backward_strip<D, Activation, 1, false>(d, f, strip, weight_sum);
    } else {
      if (rows == 4) return backward_strip<D, Activation, 4, true>(d, f, strip, weight_sum);
      if (rows == 2) return backward_strip<D, Activation, 2, true>(d, f, strip, weight_sum);
      backward_strip<D, Activation, 1, true>(d, f, strip, weight_sum);
    }
  }

  static void clear_masked(Tile<T>& tile) {
    for (size_t i = 0; i < tile.nq; ++i) {
      T* row = tile.ds + i * tile.s_stride;
      std::fill(row, row + std::min(tile.row_begin(i), tile.nk), T(0));
      std::fill(row + std::min(tile.row_end(i), tile.nk), row + tile.nk, T(0));
    }
  }

  void add_total(const Tile<T>& tile, T* partial) const {
    T total = 0;
    for (size_t i = 0; i < tile.nq; ++i)
      for (size_t j = tile.row_begin(i); j < tile.row_end(i); ++j)
        total += tile.ds[i * tile.s_stride + j];
    for (size_t e = 0; e < width_; ++e) partial[e] += total;
  }

  size_t width_, padded_;
  bool tanh_ = true;
  T slope_ = 0;
  Parameter<T> weight_;
  std::vector<T> padded_weight_;  // [heads][padded], times kScoreFactor
  std::vector<T> base_;           // [heads]: the sum of weights, for tanh
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
