// a_j = exp(e_j) / (sum_k exp(e_k) + exp(sink)). Online softmax, Milakov & Gimelshein 2018, Alg. 3.
//
// The statistics are the maximum and 1 / sum rather than the log-sum-exp: exp(e - maximum) loses
// nothing where scores are large, and is exactly 1 for the largest.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/registry.h"
#include "engine/simd/export.h"
#include "engine/call/view.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/normalisers/softmax.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/weight-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace softmax {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public NormaliserStage<T> {
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static constexpr size_t kN = HWY_LANES(T);
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;

 public:
  explicit Stage(const StageContext& context) {
    if (const auto* softmax = std::get_if<Softmax>(&context.problem.normaliser))
      sink_ = softmax->sink;
    if (!context.gradients) return;
    if (const auto* wanted = std::get_if<Softmax>(&context.gradients->normaliser))
      d_sink_ = wanted->sink;
  }

  Kind kind() const override { return Kind::kStreaming; }
  RowTerm row_term() const override { return RowTerm::kOutput; }

  void begin(const Tile<T>& tile) const override {
    for (size_t r = 0; r < padded(tile.nq); ++r) {
      tile.rows.maximum[r] = -kInfinity;
      tile.rows.sum[r] = 0;
    }
  }

  void weigh(Tile<T>& tile) const override {
    const D d;
    HWY_ALIGN T base[kMaxQueries + kN], sum[kMaxQueries + kN];
    for (size_t r = 0; r < tile.nq; ++r) {
      const size_t begin = tile.row_begin(r) / kN * kN;
      base[r] = largest(tile.s + r * tile.s_stride + begin, padded(tile.row_end(r)) - begin);
    }
    for (size_t r = 0; r < tile.nq; r += kN) {  // row state is padded to whole vectors
      const V before = hn::LoadU(d, tile.rows.maximum + r);
      const V now = hn::Max(before, hn::LoadU(d, base + r));
      // A row that has seen nothing keeps -infinity as its maximum; its weights are
      // exp(-infinity - 0).
      const V safe = hn::IfThenZeroElse(hn::Eq(now, hn::Set(d, -kInfinity)), now);
      hn::StoreU(now, d, tile.rows.maximum + r);
      hn::StoreU(safe, d, base + r);
      hn::StoreU(weight_of(d, hn::Sub(before, safe)), d, tile.rows.carry + r);
    }
    for (size_t r = 0; r < tile.nq; ++r)
      sum[r] = exponentials(tile, r, base[r], [](V x) HWY_ATTR { return x; });
    for (size_t r = 0; r < tile.nq; r += kN) {
      const V carried = hn::Mul(hn::LoadU(d, tile.rows.sum + r), hn::LoadU(d, tile.rows.carry + r));
      hn::StoreU(hn::Add(carried, hn::LoadU(d, sum + r)), d, tile.rows.sum + r);
    }
  }

  void finish(Tile<T>& tile, T* lse) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      T maximum = tile.rows.maximum[r], sum = tile.rows.sum[r], factor = 1;
      T* stats = tile.rows.stats + r * kStatistics;
      stats[2] = stats[3] = 0;
      const bool spoiled = !(sum < kInfinity) || maximum == kInfinity;
      if (sum == 0 || spoiled) {
        const T nothing = spoiled ? std::numeric_limits<T>::quiet_NaN() : T(0);
        stats[0] = stats[1] = tile.rows.carry[r] = nothing;
        if (lse) lse[r] = spoiled ? nothing : -kInfinity;
        continue;
      }
      if (sink_) {
        const T sink = sink_of(tile.head), top = std::max(maximum, sink);
        factor = std::exp(maximum - top);
        sum = sum * factor + std::exp(sink - top);
        maximum = top;
      }
      stats[0] = maximum;
      stats[1] = 1 / sum;
      // A sink may take all the weight; 0 would say that the row is empty.
      tile.rows.carry[r] = std::max(factor / sum, std::numeric_limits<T>::min());
      if (lse) lse[r] = maximum + std::log(sum);
    }
  }

  void weights(Tile<T>& tile) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      const V scale = hn::Set(D(), tile.stats[r * kStatistics + 1]);
      exponentials(tile, r, tile.stats[r * kStatistics],
                   [scale](V x) HWY_ATTR { return hn::Mul(x, scale); });
    }
  }

  // ds = a (dA - sum a dA + d lse)
  void backward(Tile<T>& tile) const override {
    const D d;
    const size_t columns = (tile.nk + kN - 1) / kN * kN;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* HWY_RESTRICT a = tile.s + r * tile.s_stride;
      T* HWY_RESTRICT g = tile.ds + r * tile.s_stride;
      const V term = hn::Set(d, term_of(tile, r));
      for (size_t c = 0; c < columns; c += kN) {
        hn::StoreU(hn::Mul(hn::LoadU(d, a + c), hn::Sub(hn::LoadU(d, g + c), term)), d, g + c);
      }
    }
  }

  size_t partial_size() const override { return d_sink_ ? 1 : 0; }
  void backward_parameters(const Tile<T>& tile, T* partial) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* stats = tile.stats + r * kStatistics;
      if (stats[1] != 0)
        *partial -= std::exp(sink_of(tile.head) - stats[0]) * stats[1] * term_of(tile, r);
    }
  }
  void store_parameters(size_t head, const T* partial) const override {
    element<T>(d_sink_, d_sink_.size[0] == 1 ? 0 : static_cast<int64_t>(head)) += *partial;
  }

 private:
  static T term_of(const Tile<T>& tile, size_t r) {
    return tile.row_term[r] - (tile.d_lse ? tile.d_lse[r] : T(0));
  }
  static size_t padded(size_t n) { return (n + kN - 1) / kN * kN; }
  T sink_of(size_t head) const {
    return read<T>(sink_, sink_.size[0] == 1 ? 0 : static_cast<int64_t>(head));
  }

  // NaN may get lost here; `exponentials` keeps it, and the sum then shows it.
  static HWY_INLINE T largest(const T* HWY_RESTRICT s, size_t columns) {
    const D d;
    V a = hn::Set(d, -kInfinity), b = a;
    size_t c = 0;
    for (; c + 2 * kN <= columns; c += 2 * kN) {
      a = hn::Max(a, hn::LoadU(d, s + c));
      b = hn::Max(b, hn::LoadU(d, s + c + kN));
    }
    if (c < columns) a = hn::Max(a, hn::LoadU(d, s + c));
    return hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
  }

  // s = last(exp(s - base)) in row r, zero before its first vector and past its last; returns the
  // sum of the exponentials. Four vectors at a time keep dependent operations apart.
  template <class Last>
  static HWY_INLINE T exponentials(const Tile<T>& tile, size_t r, T base, const Last& last) {
    const D d;
    T* HWY_RESTRICT s = tile.s + r * tile.s_stride;
    const size_t columns = padded(tile.row_end(r));
    const V b = hn::Set(d, base);
    V sum[2] = {hn::Zero(d), hn::Zero(d)};
    size_t c = 0;
    for (; c + kN <= tile.row_begin(r); c += kN) hn::StoreU(hn::Zero(d), d, s + c);
    for (; c + 4 * kN <= columns; c += 4 * kN) {
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i) {
        const V x = weight_of(d, hn::Sub(hn::LoadU(d, s + c + i * kN), b));
        sum[i % 2] = hn::Add(sum[i % 2], x);
        hn::StoreU(last(x), d, s + c + i * kN);
      }
    }
    for (; c < columns; c += kN) {
      const V x = weight_of(d, hn::Sub(hn::LoadU(d, s + c), b));
      sum[0] = hn::Add(sum[0], x);
      hn::StoreU(last(x), d, s + c);
    }
    for (; c < padded(tile.nk); c += kN) hn::StoreU(hn::Zero(d), d, s + c);
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum[0], sum[1])));
  }

  View sink_, d_sink_;
};

}  // namespace softmax

FOVEA_TARGET_FACTORY(NormaliserPointer, make_softmax, softmax::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(NormaliserPointer, make_softmax)
}  // namespace fovea::engine
#endif
