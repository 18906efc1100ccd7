#include "engine/paths/rank_one_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/loops/product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/paths/rank_one_graph_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "engine/paths/rank_one_graph_weights-inl.h"
#include "engine/simd/math-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace rank_one {

namespace hn = hwy::HWY_NAMESPACE;

// How many edges ahead to prefetch: at 10 ns per row and 100 ns of memory, with room for a second
// row in flight.
constexpr size_t kAhead = 12;

// Into the second-level cache, which has more requests in flight than the first.
HWY_INLINE void prefetch(const float* row, size_t n) {
  for (size_t i = 0; i < n; i += 16) __builtin_prefetch(row + i, 0, 2);
}

// Vectors of a head's values; kPer where that is known when compiling, 0 where not.
template <class D, size_t kPer>
HWY_INLINE size_t per_head(const RankOneGraph& g) {
  return kPer > 0 ? kPer : g.width / hn::MaxLanes(D());
}

// o[first, first + kVectors) of row i: each vector lies within one head.
template <class D, size_t kPer, size_t kVectors>
HWY_INLINE void aggregate(const RankOneGraph& g, size_t i, size_t first, const float* w,
                          const float* inverse) {
  const D d;
  constexpr size_t N = hn::MaxLanes(D());
  const size_t padded = g.padded_heads(), row_size = g.heads * g.width,
               v_per_head = per_head<D, kPer>(g);
  const size_t begin = static_cast<size_t>(g.row_offsets[i]),
               n = static_cast<size_t>(g.row_offsets[i + 1]) - begin;
  size_t head[kVectors];
  hn::Vec<D> sum[kVectors];
#pragma GCC unroll 16
  for (size_t v = 0; v < kVectors; ++v) {
    head[v] = (first + v) / v_per_head;
    sum[v] = hn::Zero(d);
  }
  for (size_t e = 0; e < n; ++e) {
    const float* row = g.value + static_cast<size_t>(g.columns[begin + e]) * row_size + first * N;
    if (begin + e + kAhead < g.edges) {
      prefetch(g.value + static_cast<size_t>(g.columns[begin + e + kAhead]) * row_size + first * N,
               kVectors * N);
    }
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) {
      sum[v] = hn::MulAdd(hn::Set(d, w[e * padded + head[v]]), hn::LoadU(d, row + v * N), sum[v]);
    }
  }
  float* out = g.output + i * row_size + first * N;
#pragma GCC unroll 16
  for (size_t v = 0; v < kVectors; ++v) {
    const auto o = hn::Mul(sum[v], hn::Set(d, inverse[head[v]]));
    if (g.stream)
      hn::Stream(o, d, out + v * N);
    else
      hn::StoreU(o, d, out + v * N);
  }
}

// As many vectors at a time as leave registers for the rest.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr size_t kMost = 16;
#else
constexpr size_t kMost = 8;
#endif

template <class D, size_t kPer>
void forward(const RankOneGraph& g, size_t from, size_t to, float* weights, int64_t* empty,
             size_t* spoiled) {
  const size_t vectors = g.heads * g.width / hn::MaxLanes(D()), padded = g.padded_heads();
  float* inverse = weights;
  float* w = weights + padded;
  for (size_t i = from; i < to; ++i) {
    const size_t end = static_cast<size_t>(g.row_offsets[i + 1]);
    for (size_t e = end + kAhead; e < std::min(g.edges, end + 2 * kAhead); ++e) {
      hwy::Prefetch(g.key + static_cast<size_t>(g.columns[e]) * g.heads);
    }
    const size_t head = weigh_row(g, i, w, inverse);
    if (head < g.heads) *spoiled = std::min(*spoiled, head * g.rows + i);
    if (g.dropout) drop_row(g, i, w);
    if (g.row_offsets[i] == g.row_offsets[i + 1]) *empty += static_cast<int64_t>(g.heads);
    size_t v = 0;
    for (; v + kMost <= vectors; v += kMost) aggregate<D, kPer, kMost>(g, i, v, w, inverse);
    if (kMost > 8 && v + 8 <= vectors) aggregate<D, kPer, 8>(g, i, v, w, inverse), v += 8;
    for (; v + 4 <= vectors; v += 4) aggregate<D, kPer, 4>(g, i, v, w, inverse);
    for (; v < vectors; ++v) aggregate<D, kPer, 1>(g, i, v, w, inverse);
  }
  if (g.stream) hwy::FlushStream();
}

// out[h] = a[h] . b[h] for every head; the same sums wherever a head's values are met.
template <class D, size_t kPer>
HWY_INLINE void head_dots(const RankOneGraph& g, const float* a, const float* b, float* out) {
  const D d;
  constexpr size_t N = hn::MaxLanes(D());
  const size_t width = per_head<D, kPer>(g) * N;
  const auto one = [&](size_t h) HWY_ATTR {
    auto sum = hn::Mul(hn::LoadU(d, a + h * width), hn::LoadU(d, b + h * width));
    for (size_t c = N; c < width; c += N) {
      sum = hn::MulAdd(hn::LoadU(d, a + h * width + c), hn::LoadU(d, b + h * width + c), sum);
    }
    return sum;
  };
  size_t h = 0;
  for (; h + 4 <= g.heads; h += 4) {
    const hn::Vec<D> four[4] = {one(h), one(h + 1), one(h + 2), one(h + 3)};
    sum_four(d, four, out + h);
  }
  if (h == g.heads) return;
  hn::Vec<D> rest[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  HWY_ALIGN float sums[4];
  for (size_t l = h; l < g.heads; ++l) rest[l - h] = one(l);
  sum_four(d, rest, sums);
  std::copy_n(sums, g.heads - h, out + h);
}

template <class D, size_t kPer>
void records(const RankOneGraph& g, size_t from, size_t to) {
  const size_t padded = g.padded_heads(), row_size = g.heads * g.width,
               record_size = g.record_parts() * padded;
  for (size_t i = from; i < to; ++i) {
    float* record = g.record + i * record_size;
    std::fill_n(record, record_size, 0.0f);
    if (g.dropout)
      draw_row(g, i, reinterpret_cast<uint32_t*>(record) + 4 * padded,
               reinterpret_cast<uint32_t*>(record) + 5 * padded);
    head_dots<D, kPer>(g, g.d_output + i * row_size, g.output + i * row_size, record + 3 * padded);
    for (size_t h = 0; h < g.heads; ++h) {
      const size_t at = i * g.heads + h;
      record[h] = g.query[at];
      record[padded + h] = g.statistics[at * 4];
      record[2 * padded + h] = g.statistics[at * 4 + 1];
      if (g.d_lse) record[3 * padded + h] -= g.d_lse[at];
    }
  }
}

// One edge: its weights (as aggregated, dropout included) to w, and the gradients of its scores,
// added to dt and kept.
template <class D, size_t kPer>
HWY_INLINE void edge_gradient(const RankOneGraph& g, size_t at, size_t i, size_t j,
                              const float* key, const float* value, float* w, float* dw,
                              float* dt) {
  const Heads d;
  const size_t N = hn::Lanes(d), padded = g.padded_heads();
  const float* record = g.record + i * g.record_parts() * padded;
  const uint32_t* drawn = reinterpret_cast<const uint32_t*>(record) + 4 * padded;
  head_dots<D, kPer>(g, g.d_output + i * g.heads * g.width, value, dw);
  const auto slope = hn::Set(d, g.negative_slope);
  for (size_t h = 0; h < g.heads; h += N) {
    const auto sum = hn::Add(hn::LoadU(d, record + h), hn::LoadU(d, key + h));
    const auto above = hn::Sub(leaky(sum, slope), hn::LoadU(d, record + padded + h));
    const auto a = hn::Mul(exp2_bounded(d, hn::Mul(above, hn::Set(d, kLog2E))),
                           hn::LoadU(d, record + 2 * padded + h));
    auto kept = a, da = load_sums(d, dw + h);
    if (g.dropout) {
      const auto factor =
          survival(g.dropout, drawn + h, drawn + padded + h, static_cast<uint32_t>(j));
      kept = hn::Mul(a, factor);
      da = hn::Mul(da, factor);
    }
    hn::StoreU(kept, d, w + h);
    const auto de = hn::Mul(a, hn::Sub(da, hn::LoadU(d, record + 3 * padded + h)));
    const auto d_sum = hn::IfThenElse(hn::Gt(sum, hn::Zero(d)), de, hn::Mul(de, slope));
    hn::StoreU(hn::Add(hn::LoadU(d, dt + h), d_sum), d, dt + h);
    hn::StoreU(d_sum, d, g.d_edge + at * padded + h);
  }
}

// Edges of a key whose weights are known before their rows are summed: the rows are still in the
// first-level cache.
constexpr size_t kEdges = 16;

// dv[first, first + kVectors) of a key gains the rows of n of its edges from `at` on,
// w[edge][padded heads].
template <class D, size_t kPer, size_t kVectors>
HWY_INLINE void add_rows(const RankOneGraph& g, size_t at, size_t n, size_t first, const float* w,
                         Into into, float* dv) {
  const D d;
  constexpr size_t N = hn::MaxLanes(D());
  const size_t padded = g.padded_heads(), row_size = g.heads * g.width,
               v_per_head = per_head<D, kPer>(g);
  size_t head[kVectors];
  hn::Vec<D> sum[kVectors];
#pragma GCC unroll 16
  for (size_t v = 0; v < kVectors; ++v) {
    head[v] = (first + v) / v_per_head;
    sum[v] = into == Into::kStore ? hn::Zero(d) : hn::LoadU(d, dv + (first + v) * N);
  }
  for (size_t e = 0; e < n; ++e) {
    const float* row = g.d_output + static_cast<size_t>(g.key_rows[at + e]) * row_size + first * N;
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) {
      sum[v] = hn::MulAdd(hn::Set(d, w[e * padded + head[v]]), hn::LoadU(d, row + v * N), sum[v]);
    }
  }
#pragma GCC unroll 16
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, dv + (first + v) * N);
}

template <class D, size_t kPer>
void keys(const RankOneGraph& g, size_t from, size_t to) {
  constexpr size_t N = hn::MaxLanes(D());
  const size_t padded = g.padded_heads(), row_size = g.heads * g.width, vectors = row_size / N;
  const size_t record_size = g.record_parts() * padded;
  HWY_ALIGN float key[kMostHeads] = {}, w[kEdges * kMostHeads], dw[kMostHeads] = {}, dt[kMostHeads];
  for (size_t j = from; j < to; ++j) {
    std::copy_n(g.key + j * g.heads, g.heads, key);
    std::fill_n(dt, padded, 0.0f);
    float* dv = g.d_value + j * row_size;
    const size_t begin = g.key_offsets[j], end = g.key_offsets[j + 1];
    if (begin == end) std::fill_n(dv, row_size, 0.0f);
    for (size_t at = begin; at < end; at += kEdges) {
      const size_t n = std::min(kEdges, end - at);
      for (size_t e = 0; e < n; ++e) {
        if (at + e + kAhead < g.edges) {
          const size_t ahead = static_cast<size_t>(g.key_rows[at + e + kAhead]);
          prefetch(g.d_output + ahead * row_size, row_size);
          prefetch(g.record + ahead * record_size, record_size);
        }
        edge_gradient<D, kPer>(g, at + e, static_cast<size_t>(g.key_rows[at + e]), j, key,
                               g.value + j * row_size, w + e * padded, dw, dt);
      }
      const Into into = at == begin ? Into::kStore : Into::kAdd;
      size_t v = 0;
      for (; v + kMost <= vectors; v += kMost) add_rows<D, kPer, kMost>(g, at, n, v, w, into, dv);
      if (kMost > 8 && v + 8 <= vectors) add_rows<D, kPer, 8>(g, at, n, v, w, into, dv), v += 8;
      for (; v + 4 <= vectors; v += 4) add_rows<D, kPer, 4>(g, at, n, v, w, into, dv);
      for (; v < vectors; ++v) add_rows<D, kPer, 1>(g, at, n, v, w, into, dv);
    }
    std::copy_n(dt, g.heads, g.d_key + j * g.heads);
  }
}

void queries(const RankOneGraph& g, size_t from, size_t to) {
  const Heads d;
  const size_t N = hn::Lanes(d), padded = g.padded_heads();
  for (size_t i = from; i < to; ++i) {
    const size_t begin = static_cast<size_t>(g.row_offsets[i]),
                 end = static_cast<size_t>(g.row_offsets[i + 1]);
    for (size_t e = end; e < std::min(g.edges, end + 2 * kAhead); ++e) {
      hwy::Prefetch(g.d_edge + static_cast<size_t>(g.place[e]) * padded);
    }
    for (size_t h = 0; h < g.heads; h += N) {
      auto sum = hn::Zero(d);
      for (size_t e = begin; e < end; ++e)
        sum = hn::Add(sum, hn::LoadU(d, g.d_edge + static_cast<size_t>(g.place[e]) * padded + h));
      store_heads(sum, g.d_query + i * g.heads + h, g.heads - h);
    }
  }
}

template <class D, size_t kPer = 0>
const RankOneKernels* table() {
  static constexpr RankOneKernels kTable{forward<D, kPer>, records<D, kPer>, keys<D, kPer>,
                                         queries};
  return &kTable;
}

}  // namespace rank_one

const RankOneKernels* rank_one_for(size_t width) {
  namespace hn = hwy::HWY_NAMESPACE;
  // The usual widths of graph attention: 8 per head, and 32.
  if (width == 8)
    return rank_one::table<hn::CappedTag<float, 8>, 8 / hn::MaxLanes(hn::CappedTag<float, 8>())>();
  if (width == 32)
    return rank_one::table<hn::CappedTag<float, 16>,
                           32 / hn::MaxLanes(hn::CappedTag<float, 16>())>();
  if (width % 16 == 0) return rank_one::table<hn::CappedTag<float, 16>>();
  if (width % 8 == 0) return rank_one::table<hn::CappedTag<float, 8>>();
  if (width % 4 == 0) return rank_one::table<hn::CappedTag<float, 4>>();
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(rank_one_for);
const RankOneKernels* rank_one_kernels(size_t width) {
  return HWY_DYNAMIC_DISPATCH(rank_one_for)(width);
}
}  // namespace fovea::engine
#endif
