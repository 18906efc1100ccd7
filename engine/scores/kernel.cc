// Kernels of distance (Nadaraya 1964, Watson 1964): with u = |D(q - k)| / h, the score is log K(u),
// or K(u) for the normalisers that take values.
//
// Distances come from differences, never from |q|^2 - 2 q.k + |k|^2, which cancels where kernels
// matter most. Lanes run over keys. A prepared query is D q followed by b = 1 / h, a prepared key is
// D k. So the gradients of the metric and of the bandwidth (fixed, per head or per query) come back
// through the rows: with z = u^2 = b^2 |q - k|^2 and c = de (dK/du) / u,
//
//   dq = sum_j c b^2 (q - k),   dk = -sum_i c b^2 (q - k),   db = sum_j c z / b,   dh = -b^2 db.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/scores/kernel.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <utility>

#include "engine/call/parameter.h"
#include "engine/registry.h"
#include "engine/scores/kernel-inl.h"
#include "engine/simd/export.h"
#include "engine/call/view.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace kernel {

template <class T>
class Stage final : public ScoreStage<T> {
  using D = hn::ScalableTag<T>;
  static constexpr size_t N = HWY_LANES(T);

 public:
  explicit Stage(const StageContext& context)
      : choice_(std::get<Kernel>(context.problem.score.kind)),
        in_width_(context.geometry.query_width) {
    linear_ = choice_.name == choice::KernelName::kGaussian && context.face == Face::kLog;
    functions_ = functions<T>(choice_.name, context.face);
    metric_ = Parameter<T>(choice_.metric, choice_.metric.rank);
    diagonal_ = metric_ && choice_.metric.rank == 1;
    width_ = metric_ && !diagonal_ ? static_cast<size_t>(choice_.metric.size[0]) : in_width_;
    per_query_ = choice_.bandwidth.rank == 3;
    if (!per_query_) bandwidth_ = Parameter<T>(choice_.bandwidth, 0);
    if (context.gradients) {
      const Kernel& gradient = std::get<Kernel>(context.gradients->score.kind);
      metric_.set_gradient(gradient.metric);
      bandwidth_.set_gradient(per_query_ ? View{} : gradient.bandwidth);
      d_bandwidth_ = gradient.bandwidth;
    }
  }

  size_t prepared_query_width() const override { return width_ + 1; }
  size_t prepared_key_width() const override { return metric_ ? width_ : 0; }
  void prepare_query(size_t batch, size_t head, size_t row0, size_t n, const T* in,
                     size_t in_stride, T* out) const override {
    for (size_t i = 0; i < n; ++i) {
      stretch(in + i * in_stride, out + i * (width_ + 1));
      out[i * (width_ + 1) + width_] = 1 / bandwidth(batch, head, row0 + i);
    }
  }
  void prepare_key(size_t, size_t, size_t, size_t n, const T* in, size_t in_stride,
                   T* out) const override {
    for (size_t j = 0; j < n; ++j) stretch(in + j * in_stride, out + j * width_);
  }
  // Partial: the metric's gradient, then the bandwidth's.
  void unprepare_query(size_t batch, size_t head, size_t row0, size_t n, const T* in,
                       size_t in_stride, const T* d_prepared, T* d_in, size_t d_in_stride,
                       T* partial) const override {
    for (size_t i = 0; i < n; ++i) {
      const T* d_row = d_prepared + i * (width_ + 1);
      unstretch(in + i * in_stride, d_row, d_in + i * d_in_stride, partial);
      const T h = bandwidth(batch, head, row0 + i);
      const T dh = -d_row[width_] / (h * h);
      if (bandwidth_.wants_gradient() && partial) partial[metric_size()] += dh;
      if (per_query_ && d_bandwidth_) element<T>(d_bandwidth_, batch, head, row0 + i) = dh;
    }
  }
  void unprepare_key(size_t, size_t, size_t, size_t n, const T* in, size_t in_stride,
                     const T* d_prepared, T* d_in, size_t d_in_stride, T* partial) const override {
    for (size_t j = 0; j < n; ++j)
      unstretch(in + j * in_stride, d_prepared + j * width_, d_in + j * d_in_stride, partial);
  }

  // [group of lanes][width][lanes]
  size_t panel_size() const override { return kPanelKeys * width_; }
  void pack_keys(const T* rows, size_t stride, size_t nk, T* panel) const override {
    for (size_t j0 = 0; j0 < kPanelKeys; j0 += N) {
      for (size_t j = 0; j < N; ++j) {
        const bool there = j0 + j < nk;
        for (size_t e = 0; e < width_; ++e)
          panel[(j0 * width_) + e * N + j] = there ? rows[(j0 + j) * stride + e] : T(0);
      }
    }
  }

  void score(Tile<T>& tile) const override {
    for (size_t i = 0; i < tile.nq;) {
      const size_t rows = tile.nq - i >= 4 ? 4 : 1;
      const auto [begin, end] = group_range(tile, i, rows);
      const T scale = linear_ ? T(-0.5) : T(1), offset = linear_ ? kLogGaussian<T> : T(0);
      run_distances(tile, i, rows, begin, end, scale, offset, tile.s + i * tile.s_stride,
                    tile.s_stride);
      for (size_t r = i; r < i + rows && !linear_; ++r)
        functions_.value(tile.s + r * tile.s_stride + begin * N, (end - begin) * N);
      i += rows;
    }
  }

  bool needs_raw() const override { return linear_ && d_bandwidth_; }
  bool fused_backward() const override { return true; }
  void backward_query(Tile<T>&) const override {}
  void backward_key(Tile<T>&) const override {}
  void backward(Tile<T>& tile, bool first_query, bool first_key, T*) const override {
    if (tile.dq && first_query) clear(tile.dq, tile.dq_stride, tile.nq, width_ + 1);
    if (tile.dk && first_key) clear(tile.dk, tile.dk_stride, tile.nk, width_);
    coefficients(tile);
    HWY_ALIGN T dk[4 * kMaxKeys];
    HWY_ALIGN T dq[4 * 4];
    for (size_t feature = 0; feature < width_; feature += 4) {
      const size_t features = std::min<size_t>(4, width_ - feature);
      std::fill_n(dk, 4 * ((tile.nk + N - 1) / N * N), T(0));
      for (size_t i = 0; i < tile.nq;) {
        const size_t rows = tile.nq - i >= 4 ? 4 : 1;
        const auto [begin, end] = group_range(tile, i, rows);
        accumulate_any<T>(rows, features, tile.finite,
                          {.q = tile.q + i * tile.q_stride,
                           .q_stride = tile.q_stride,
                           .groups = tile.k_panel,
                           .width = width_,
                           .feature = feature,
                           .begin = begin,
                           .end = end,
                           .c = tile.ds + i * tile.s_stride,
                           .c_stride = tile.s_stride,
                           .dq = dq,
                           .dk = dk});
        for (size_t r = 0; r < rows && tile.dq; ++r)
          for (size_t e = 0; e < features; ++e)
            tile.dq[(i + r) * tile.dq_stride + feature + e] += dq[r * 4 + e];
        i += rows;
      }
      for (size_t j = 0; j < tile.nk && tile.dk; ++j)
        for (size_t e = 0; e < features; ++e)
          tile.dk[j * tile.dk_stride + feature + e] += dk[(j / N * 4 + e) * N + j % N];
    }
  }

  // A bandwidth for each query has its gradient stored by unprepare_query, which runs for those
  // that have partial sums.
  size_t partial_size() const override { return metric_size() + (d_bandwidth_ ? 1 : 0); }
  void store_parameters(size_t, size_t head, const T* partial) const override {
    if (metric_.wants_gradient()) metric_.add_to_gradient(0, partial);
    if (bandwidth_.wants_gradient()) bandwidth_.add_to_gradient(head, partial + metric_size());
  }

 private:
  size_t metric_size() const { return metric_.wants_gradient() ? metric_.size() : 0; }
  T bandwidth(size_t batch, size_t head, size_t query) const {
    return per_query_ ? read<T>(choice_.bandwidth, batch, head, query) : *bandwidth_.of(head);
  }

  // out = D in
  void stretch(const T* in, T* out) const {
    const T* m = metric_.of(0);
    for (size_t r = 0; r < width_; ++r) {
      if (metric_ && !diagonal_) {
        T sum = 0;
        for (size_t e = 0; e < in_width_; ++e) sum += m[r * in_width_ + e] * in[e];
        out[r] = sum;
      } else {
        out[r] = diagonal_ ? m[r] * in[r] : in[r];
      }
    }
  }
  // d_in = D' d_out, dD += d_out in'
  void unstretch(const T* in, const T* d_out, T* d_in, T* partial) const {
    const T* m = metric_.of(0);
    T* d_metric = metric_.wants_gradient() ? partial : nullptr;
    if (!metric_ || diagonal_) {
      for (size_t e = 0; e < in_width_; ++e) {
        d_in[e] = diagonal_ ? m[e] * d_out[e] : d_out[e];
        if (d_metric && d_out[e] != 0) d_metric[e] += d_out[e] * in[e];
      }
      return;
    }
    std::fill_n(d_in, in_width_, T(0));
    for (size_t r = 0; r < width_; ++r) {
      if (d_out[r] == 0) continue;  // what never met a pair may hold NaN
      for (size_t e = 0; e < in_width_; ++e) {
        d_in[e] += m[r * in_width_ + e] * d_out[r];
        if (d_metric) d_metric[r * in_width_ + e] += d_out[r] * in[e];
      }
    }
  }

  static void clear(T* rows, size_t stride, size_t n, size_t width) {
    for (size_t i = 0; i < n; ++i) std::fill_n(rows + i * stride, width, T(0));
  }

  // Vectors of keys that rows [i, i + rows) reach.
  static std::pair<size_t, size_t> group_range(const Tile<T>& tile, size_t i, size_t rows) {
    size_t begin = tile.nk, end = 0;
    for (size_t r = i; r < i + rows; ++r) {
      begin = std::min(begin, tile.row_begin(r));
      end = std::max(end, tile.row_end(r));
    }
    if (begin >= end) return {0, 0};
    return {begin / N, (end + N - 1) / N};
  }

  void run_distances(const Tile<T>& tile, size_t i, size_t rows, size_t begin, size_t end, T scale,
                     T offset, T* out, size_t out_stride) const {
    Distances<T> m{.q = tile.q + i * tile.q_stride,
                   .q_stride = tile.q_stride,
                   .groups = tile.k_panel,
                   .width = width_,
                   .begin = begin,
                   .end = end,
                   .factor = {},
                   .offset = offset,
                   .out = out,
                   .out_stride = out_stride};
    for (size_t r = 0; r < rows; ++r) {
      const T b = m.q[r * tile.q_stride + width_];
      m.factor[r] = scale * b * b;
    }
    if (rows == 4)
      distances<T, 4>(m);
    else
      distances<T, 1>(m);
  }

  // tile.ds: de -> de slope b^2, 0 where a row does not reach; adds what each row's b receives to
  // tile.dq.
  void coefficients(Tile<T>& tile) const {
    HWY_ALIGN T z[4 * kMaxKeys];
    for (size_t i = 0; i < tile.nq;) {
      const size_t rows = tile.nq - i >= 4 ? 4 : 1;
      const auto [begin, end] = group_range(tile, i, rows);
      if (!linear_) run_distances(tile, i, rows, begin, end, T(1), T(0), z, kMaxKeys);
      for (size_t r = 0; r < rows; ++r) {
        T* de = tile.ds + (i + r) * tile.s_stride;
        std::fill(de + begin * N, de + std::max(begin * N, tile.row_begin(i + r)), T(0));
        if (end > begin) std::fill(de + std::min(end * N, tile.row_end(i + r)), de + end * N, T(0));
        const T b = tile.q[(i + r) * tile.q_stride + width_];
        const size_t first = begin * N, n = (end - begin) * N;
        const T* score = tile.raw ? tile.raw + (i + r) * tile.s_stride + first : nullptr;
        const T sum = linear_
                          ? linear_coefficients(score, de + first, n, b * b)
                          : functions_.coefficients(z + r * kMaxKeys + first, de + first, n, b * b);
        if (tile.dq) tile.dq[(i + r) * tile.dq_stride + width_] += n ? sum / (b * b * b) : T(0);
      }
      i += rows;
    }
  }

  const Kernel& choice_;
  size_t in_width_, width_ = 0;
  bool linear_ = false;  // log K is linear in the squared distance
  bool diagonal_ = false, per_query_ = false;
  Functions<T> functions_;
  Parameter<T> metric_, bandwidth_;
  View d_bandwidth_;
};

}  // namespace kernel

FOVEA_TARGET_FACTORY(ScorePointer, make_kernel, kernel::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(ScorePointer, make_kernel)
}  // namespace fovea::engine
#endif
