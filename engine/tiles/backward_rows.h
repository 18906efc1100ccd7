// Computes whole rows of scores again, a strip of rows at a time: shared by the passes over row
// terms and over supports.
#pragma once

#include <algorithm>

#include "engine/tiles/backward.h"
#include "engine/runtime/caches.h"

namespace fovea::engine {

// Below this share of pairs with weight, gathering their rows costs less than products of whole
// tiles: about 25 cycles per pair for each of four rows against two.
inline constexpr size_t kFewOneIn = 16;

template <class T>
class RowStrips {
 protected:
  RowStrips(BackwardState<T>& state, size_t rows) : s_(state), rows_(rows) {}

  void lay(Layout& layout) {
    const size_t all = s_.geometry.max_keys;
    run_ = s_.keys.lay(layout, all);
    scores_ = layout.take<T>(strip_size());
    modifiers_.clear();
    for (const auto& m : s_.pass.stages.modifiers)
      modifiers_.push_back(layout.take<T>(kMaxQueries * m->row_scratch()));
    marks_ = layout.take<Marks>(1);
  }
  size_t strip_size() const { return rows_ * tile_stride(s_.geometry.max_keys) + kPanelKeys; }

  // body(tile, finite) for each strip of a block's rows; keys are loaded once a head.
  template <class Body>
  void each_strip(size_t batch, size_t head, size_t b, const Body& body) {
    const Geometry& g = s_.geometry;
    if (b * kMaxQueries >= g.query_count[batch]) return;
    const size_t key_head = head / g.group;
    if (!loaded_ || batch != batch_ || key_head != key_head_) {
      s_.keys.attach(&run_, batch, key_head, 0);
      s_.keys.load(run_, batch, key_head, 0, g.key_limit[batch]);
      loaded_ = true;
      batch_ = batch;
      key_head_ = key_head;
    }
    Tile<T> whole;
    s_.show(batch, head, b, &whole);
    for (size_t r = 0; r < whole.nq; r += rows_) {
      Tile<T> tile = whole;
      tile.q0 += r;
      tile.nq = std::min(rows_, whole.nq - r);
      tile.q += r * tile.q_stride;
      tile.g += r * tile.g_stride;
      tile.stats += r * kStatistics;
      tile.row_term += r;
      if (tile.d_lse) tile.d_lse += r;
      if (tile.dq) tile.dq += r * tile.dq_stride;
      body(tile, s_.at(batch, head, b).finite);
    }
  }

  // Scores of the tile's rows with all keys they reach, in scores_, `unseen` elsewhere: each(tile,
  // its first column) as they are made. The tile then shows the whole rows.
  template <class Each>
  void score_rows(Tile<T>& tile, bool finite, T unseen, const Each& each) {
    for (size_t m = 0; m < modifiers_.size(); ++m)
      s_.pass.stages.modifiers[m]->begin_rows(tile, modifiers_[m]);
    Reach reach(*s_.pass.structure, tile.batch, tile.head, tile.q0, tile.nq,
                s_.geometry.key_count[tile.batch]);
    const size_t first = reach.begin(), all = reach.end() - first;
    tile.s_stride = tile_stride(all);
    std::fill_n(scores_, tile.nq * tile.s_stride, unseen);
    for (Span span; reach.next(&span);) {
      if (!describe(*s_.pass.structure, span, *marks_, &tile)) continue;
      s_.keys.show(run_, span.k0, span.nk, &tile);
      tile.finite = tile.finite && finite;
      tile.s = scores_ + (span.k0 - first);
      score_tile(s_.pass, tile, modifiers_);
      each(tile, span.k0 - first);
    }
    tile.s = scores_;
    tile.masked = false;
    tile.keep = nullptr;
    tile.k0 = first;
    tile.nk = all;
    row_loops<T>().mask(tile, tile.s, unseen);
  }

  BackwardState<T>& s_;
  const size_t rows_;
  KeyRun<T> run_;
  T* scores_;
  Vector<T*> modifiers_;

 private:
  bool loaded_ = false;
  size_t batch_ = 0, key_head_ = 0;
  Marks* marks_;
};

// One worker per slot, each with strips of as many rows as the caches hold, `arrays` numbers per pair.
template <class Worker, class T>
Vector<Worker> strip_workers(BackwardState<T>& state, const Parallel& parallel, size_t tickets,
                             size_t arrays) {
  const size_t rows = strip_rows(state.geometry.max_keys, arrays * sizeof(T));
  Vector<Worker> workers;
  workers.reserve(slots(parallel, tickets));
  for (size_t i = 0; i < slots(parallel, tickets); ++i) workers.emplace_back(state, rows);
  return workers;
}

}  // namespace fovea::engine
