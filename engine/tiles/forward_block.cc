#include "engine/tiles/forward.h"

#include <cmath>

#include "engine/call/view.h"
#include "engine/runtime/caches.h"
#include "engine/tiles/spoiled.h"

namespace fovea::engine {
namespace {

// tile.o gains the weighted values, from bfloat16 pairs where there are any and zero weights may be
// multiplied.
template <class T>
void sum_values(const Tile<T>& tile, const uint32_t* pairs) {
  const Into into = tile.first ? Into::kStore : Into::kCarry;
  if constexpr (sizeof(T) == 4) {
    if (pairs && tile.finite) return bf16_products()->aggregate(tile, pairs, into);
  }
  products<T>().aggregate(tile, tile.s, tile.v, tile.v_stride, tile.value_width, T(1), into,
                          tile.rows.carry, tile.o, tile.o_stride);
}

// Weights of spoiled rows in a tile of weights; its scores, made again beside it, say which keys
// they see.
template <class T>
void spoil_weights(const Pass<T>& pass, const TileScratch<T>& scratch, const Tile<T>& tile) {
  Tile<T> scores = tile;
  scores.s_stride = tile_stride(tile.nk);
  std::vector<T> cells(tile.nq * scores.s_stride + kPanelKeys);
  scores.s = cells.data();
  score_tile(pass, scores, scratch.modifiers);
  Spoiled<T>(scores, pass.stages.normaliser->face()).put(tile.s, tile.s_stride);
}

}  // namespace

template <class T>
ForwardBlock<T>::ForwardBlock(const Pass<T>& pass, const Result& result, const KeyLoader<T>& keys,
                              Report& report)
    : pass_(pass), result_(result), keys_(keys), report_(report) {
  const size_t all = std::max<size_t>(1, pass.geometry.max_keys);
  if (pass.stages.normaliser->kind() == Kind::kStreaming) {
    columns_ = std::min(kMaxKeys, all);
    rows_ = kMaxQueries;
  } else {
    rows_ = strip_rows(all, sizeof(T));
    columns_ = all;
  }
}

template <class T>
Tile<T> ForwardBlock<T>::begin(TileScratch<T>& scratch, size_t batch, size_t head, size_t q0,
                               size_t nq) const {
  Tile<T> tile;
  show_queries(pass_.problem, pass_.geometry, *pass_.stages.score, batch, head, q0, nq,
               scratch.q_plain, scratch.q_prepared, &tile);
  tile.value_width = pass_.geometry.value_width;
  tile.s = scratch.s;
  tile.rows = scratch.rows;
  std::fill_n(scratch.seen, nq, uint8_t{0});
  for (size_t m = 0; m < pass_.stages.modifiers.size(); ++m)
    pass_.stages.modifiers[m]->begin_rows(tile, scratch.modifiers[m]);
  return tile;
}

template <class T>
void ForwardBlock<T>::run(TileScratch<T>& scratch, KeyRun<T>& keys, size_t batch, size_t head,
                          size_t q0, size_t nq) const {
  run(scratch, keys, batch, head, q0, nq, [] { return nullptr; });
}

template <class T>
void ForwardBlock<T>::run(TileScratch<T>& scratch, KeyRun<T>& keys, size_t batch, size_t head,
                          size_t q0, size_t nq,
                          const std::function<PrefetchList*()>& coming) const {
  Tile<T> tile = begin(scratch, batch, head, q0, nq);
  show_output(pass_, result_, scratch, &tile);
  Reach reach(*pass_.structure, batch, head, q0, nq, pass_.geometry.key_count[batch]);
  keys_.fill(&keys, batch, head / pass_.geometry.group, reach.begin(), reach.end());
  tile.prefetch = coming();
  if (pass_.stages.normaliser->kind() == Kind::kStreaming)
    stream(scratch, keys, reach, tile);
  else
    solve(scratch, keys, reach, tile);
  settle_rows(pass_, scratch, tile, report_);
  store_results(pass_, result_, scratch, tile);
}

template <class T>
void ForwardBlock<T>::stream(TileScratch<T>& scratch, const KeyRun<T>& keys, Reach& reach,
                             Tile<T>& tile) const {
  const auto& [score, modifiers, normaliser] = pass_.stages;
  normaliser->begin(tile);
  tile.first = true;
  for (Span span; reach.next(&span);) {
    if (!describe(*pass_.structure, span, *scratch.marks, &tile)) continue;
    keys_.show(keys, span.k0, span.nk, &tile);
    tile.s_stride = tile_stride(span.nk);
    for (size_t r = 0; r < tile.nq; ++r) scratch.seen[r] |= tile.row_begin(r) < tile.row_end(r);
    score_tile(pass_, tile, scratch.modifiers);
    normaliser->weigh(tile);
    if (pass_.dropout) drop(pass_.dropout, tile, tile.s, tile.s);
    for (size_t m = 0; m < modifiers.size(); ++m)
      modifiers[m]->after_weights(tile, scratch.modifiers[m]);
    sum_values(tile, keys_.pairs(keys, span.k0));
    tile.first = false;
  }
  if (tile.first) {
    for (size_t r = 0; r < tile.nq; ++r)
      std::fill_n(tile.o + r * tile.o_stride, tile.value_width, T(0));
  }
  normaliser->finish(tile, result_.lse ? scratch.lse : nullptr);
}

template <class T>
void ForwardBlock<T>::fill_strip(TileScratch<T>& scratch, const KeyRun<T>& keys, Reach& reach,
                                 Tile<T>& tile) const {
  const size_t first = reach.begin(), all = reach.end() - reach.begin();
  tile.s_stride = tile_stride(all);
  // What no span covers is masked.
  size_t at = first;
  const auto skip_to = [&](size_t k) {
    for (size_t r = 0; r < tile.nq; ++r) {
      T* row = scratch.s + r * tile.s_stride;
      std::fill(row + (at - first), row + (k - first), pass_.masked);
    }
  };
  for (Span span; reach.next(&span);) {
    if (!describe(*pass_.structure, span, *scratch.marks, &tile)) continue;
    skip_to(span.k0);
    at = span.k0 + span.nk;
    keys_.show(keys, span.k0, span.nk, &tile);
    tile.s = scratch.s + (span.k0 - first);
    for (size_t r = 0; r < tile.nq; ++r) scratch.seen[r] |= tile.row_begin(r) < tile.row_end(r);
    score_tile(pass_, tile, scratch.modifiers);
  }
  skip_to(first + all);
  tile.s = scratch.s;
  tile.masked = false;
  tile.keep = nullptr;
  if (all > 0)
    keys_.show(keys, first, all, &tile);
  else
    tile.nk = 0;
  row_loops<T>().mask(tile, tile.s, pass_.masked);
}

template <class T>
void ForwardBlock<T>::solve(TileScratch<T>& scratch, const KeyRun<T>& keys, Reach& reach,
                            Tile<T>& tile) const {
  const auto& [score, modifiers, normaliser] = pass_.stages;
  fill_strip(scratch, keys, reach, tile);
  // Few keys have weight: they are listed, and only their values are read. Dropout and modifiers need
  // the weights at their positions.
  if (!pass_.dropout && modifiers.empty()) {
    tile.support = scratch.support;
    tile.support_count = scratch.support_count;
    normaliser->solve(tile, result_.lse ? scratch.lse : nullptr);
    for (size_t r = 0; r < tile.nq; ++r) {
      const size_t n = tile.nk == 0 ? 0 : static_cast<size_t>(tile.support_count[r]);
      row_loops<T>().gather(tile.s + r * tile.s_stride, tile.support + r * tile.s_stride, n, tile.v,
                            tile.v_stride, tile.value_width, Into::kStore,
                            tile.o + r * tile.o_stride);
    }
    return;
  }
  normaliser->solve(tile, result_.lse ? scratch.lse : nullptr);
  if (pass_.dropout) drop(pass_.dropout, tile, tile.s, tile.s);
  for (size_t m = 0; m < modifiers.size(); ++m)
    modifiers[m]->after_weights(tile, scratch.modifiers[m]);
  if (tile.nk > 0) {
    products<T>().aggregate(tile, tile.s, tile.v, tile.v_stride, tile.value_width, T(1),
                            Into::kStore, tile.rows.carry, tile.o, tile.o_stride);
  }
}

template <class T>
void ForwardBlock<T>::weights(TileScratch<T>& scratch, const KeyRun<T>& keys, size_t batch,
                              size_t head, size_t q0, size_t nq, const Put& put) const {
  const auto& normaliser = pass_.stages.normaliser;
  const auto& loops = row_loops<T>();
  constexpr T kMasked = -std::numeric_limits<T>::infinity();
  const bool streams = normaliser->kind() == Kind::kStreaming;
  Tile<T> tile = begin(scratch, batch, head, q0, nq);
  Reach reach(*pass_.structure, batch, head, q0, nq, pass_.geometry.key_count[batch]);
  const size_t first = reach.begin();
  const Reach again = reach;
  const auto each_tile = [&](const auto& body) {
    Reach spans = again;
    for (Span span; spans.next(&span);) {
      if (!describe(*pass_.structure, span, *scratch.marks, &tile)) continue;
      keys_.show(keys, span.k0, span.nk, &tile);
      if (streams) tile.s_stride = tile_stride(span.nk);
      body();
    }
  };
  if (streams) {
    normaliser->begin(tile);
    each_tile([&] {
      score_tile(pass_, tile, scratch.modifiers);
      normaliser->weigh(tile);
    });
    normaliser->finish(tile, nullptr);
  } else {
    fill_strip(scratch, keys, reach, tile);
    normaliser->solve(tile, nullptr);
  }
  bool spoiled = false;
  for (size_t r = 0; r < nq; ++r) {
    if (!is_spoiled(tile.rows.stats + r * kStatistics)) continue;
    spoiled = true;
    report_.spoiled((batch * pass_.geometry.heads + head) * pass_.geometry.max_queries + q0 + r);
  }
  tile.stats = tile.rows.stats;
  const size_t stride = tile.s_stride;
  each_tile([&] {
    if (streams) {
      score_tile(pass_, tile, scratch.modifiers);
      normaliser->weights(tile);
    } else {
      tile.s = scratch.s + (tile.k0 - first);
      tile.s_stride = stride;
    }
    if (spoiled) spoil_weights(pass_, scratch, tile);
    // The padding of a strip's span is the next span's first columns: only what is masked.
    if (tile.masked || streams) loops.mask(tile, tile.s, kMasked);
    put(tile);
  });
}

template <class T>
void show_output(const Pass<T>& pass, const Result& result, const TileScratch<T>& scratch,
                 Tile<T>* tile) {
  tile->o = scratch.o;
  tile->o_stride = pass.geometry.value_width;
  if (!result.output) return;
  const Rows rows = pass.geometry.query_rows(result.output, tile->batch, tile->head);
  if (T* as_is = direct<T>(result.output.dtype, rows, tile->q0)) {
    tile->o = as_is;
    tile->o_stride = static_cast<size_t>(rows.stride);
  }
}

template <class T>
void settle_rows(const Pass<T>& pass, TileScratch<T>& scratch, Tile<T>& tile, Report& report) {
  const Geometry& g = pass.geometry;
  int64_t empty = 0;
  for (size_t r = 0; r < tile.nq; ++r) {
    T& carry = tile.rows.carry[r];
    if (!scratch.seen[r]) carry = 0;
    if (std::isnan(carry))
      report.spoiled((tile.batch * g.heads + tile.head) * g.max_queries + tile.q0 + r);
    empty += carry == 0;
  }
  report.empty(empty);
  row_loops<T>().scale(tile.o, tile.o_stride, tile.nq, tile.value_width, tile.rows.carry);
  for (size_t m = 0; m < pass.stages.modifiers.size(); ++m)
    pass.stages.modifiers[m]->finish_rows(tile, scratch.modifiers[m]);
}

template <class T>
void store_results(const Pass<T>& pass, const Result& result, const TileScratch<T>& scratch,
                   const Tile<T>& tile) {
  const Geometry& g = pass.geometry;
  const auto rows = [&](const View& view) { return g.query_rows(view, tile.batch, tile.head); };
  if (result.output && tile.o == scratch.o) {
    store_rows(tile.o, tile.o_stride, tile.nq, tile.value_width, result.output.dtype,
               rows(result.output), tile.q0);
  }
  if (result.lse)
    store_rows(scratch.lse, 1, tile.nq, 1, result.lse.dtype, rows(result.lse), tile.q0);
  if (result.statistics) {
    store_rows(scratch.rows.stats, kStatistics, tile.nq, kStatistics, result.statistics.dtype,
               rows(result.statistics), tile.q0);
  }
}

#define FOVEA_INSTANTIATE(T)                                                           \
  template void settle_rows<T>(const Pass<T>&, TileScratch<T>&, Tile<T>&, Report&);    \
  template void store_results<T>(const Pass<T>&, const Result&, const TileScratch<T>&, \
                                 const Tile<T>&);                                      \
  template void show_output<T>(const Pass<T>&, const Result&, const TileScratch<T>&, Tile<T>*)
FOVEA_INSTANTIATE(float);
FOVEA_INSTANTIATE(double);
#undef FOVEA_INSTANTIATE
template class ForwardBlock<float>;
template class ForwardBlock<double>;

}  // namespace fovea::engine
