// What every driver needs for one call, whatever its order of work: the problem, its stages, and
// the scratch of a worker.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <string>

#include "engine/tiles/dropout.h"
#include "engine/tiles/operands.h"
#include "engine/tiles/reach.h"
#include "engine/registry.h"

namespace fovea::engine {

template <class T>
struct Pass {
  Pass(const Problem& p, const Geometry& g, const Gradients* gradients)
      : problem(p),
        geometry(g),
        stages(make_stages<T>({p, g, gradients, face_of(p)})),
        structure(make_structure(p, g)),
        dropout(make_dropout(p.dropout_p, p.seed)),
        masked(stages.normaliser->face() == Face::kValue ? T(0)
                                                         : -std::numeric_limits<T>::infinity()) {}

  const Problem& problem;
  const Geometry& geometry;
  Stages<T> stages;
  std::unique_ptr<StructureStage> structure;
  Dropout dropout;
  T masked;  // the value of masked entries in a score tile

  size_t query_width() const {
    const size_t w = stages.score->prepared_query_width();
    return w ? w : geometry.query_width;
  }
};

// The stride of a tile of n columns: whole vectors, and off the powers of two that would put all
// rows on the same cache sets.
inline size_t tile_stride(size_t n) {
  return (n + kRowPadding - 1) / kRowPadding * kRowPadding + kRowPadding;
}

// One worker's tile: scores, query rows, output rows, row state.
template <class T>
struct TileScratch : InScratch {
  T *s, *q_plain, *q_prepared, *o;
  RowState<T> rows;
  T* lse;
  Vector<T*> modifiers;
  Marks* marks;
  uint8_t* seen;
  int32_t *support, *support_count;  // threshold normalisers only

  TileScratch(const Pass<T>& pass, Layout& layout, size_t rows_of_scores, size_t columns) {
    const Geometry& g = pass.geometry;
    const size_t padded = kMaxQueries + kRowPadding;
    s = layout.take<T>(rows_of_scores * tile_stride(columns) + kPanelKeys);
    q_plain = layout.take<T>(kMaxQueries * g.query_width);
    q_prepared = layout.take<T>(kMaxQueries * pass.stages.score->prepared_query_width());
    o = layout.take<T>(kMaxQueries * g.value_width);
    rows = {layout.take<T>(padded), layout.take<T>(padded), layout.take<T>(padded),
            layout.take<T>(padded * kStatistics)};
    lse = layout.take<T>(padded);
    for (const auto& m : pass.stages.modifiers)
      modifiers.push_back(layout.take<T>(kMaxQueries * m->row_scratch()));
    marks = layout.take<Marks>(1);
    seen = layout.take<uint8_t>(padded);
    const bool solves = pass.stages.normaliser->kind() == Kind::kThreshold;
    support = layout.take<int32_t>(solves ? rows_of_scores * tile_stride(columns) + kPanelKeys : 0);
    support_count = layout.take<int32_t>(padded);
  }
};

// What many threads found about the rows: how many saw no key, and the lowest that saw a score of
// NaN or +infinity.
class Report {
 public:
  void spoiled(size_t row) {
    size_t lowest = spoiled_.load();
    while (row < lowest && !spoiled_.compare_exchange_weak(lowest, row)) {
    }
  }
  void empty(int64_t rows) { empty_ += rows; }
  int64_t empty() const { return empty_; }
  // Rows count (batch * heads + head) * max_queries + query.
  void check(const Problem& problem, const Geometry& g) const {
    const size_t row = spoiled_.load();
    if (row == SIZE_MAX || !problem.check_finite) return;
    const size_t query = row % g.max_queries, head = row / g.max_queries % g.heads,
                 batch = row / g.max_queries / g.heads;
    throw InvalidArgument("score: NaN or +infinity in the row of batch " + std::to_string(batch) +
                          ", head " + std::to_string(head) + ", query " + std::to_string(query) +
                          ", expected finite scores (check_finite)");
  }

 private:
  std::atomic<size_t> spoiled_{SIZE_MAX};
  std::atomic<int64_t> empty_{0};
};

// The score of one tile, together with the first modifier where that only adds: returns how many
// modifiers it has applied. Not for a tile that keeps raw scores.
template <class T>
size_t score_and_add(const Stages<T>& stages, Tile<T>& tile, const Vector<T*>& scratch) {
  const bool may = stages.score->adds() && !stages.modifiers.empty() && !tile.raw;
  tile.addend = may ? stages.modifiers[0]->addend(tile, scratch[0]) : Addend<T>{};
  stages.score->score(tile);
  return tile.addend.data ? 1 : 0;
}

// Score, modifiers and mask of one tile: what both kinds of normaliser start from.
template <class T>
void score_tile(const Pass<T>& pass, Tile<T>& tile, const Vector<T*>& scratch) {
  const auto& modifiers = pass.stages.modifiers;
  for (size_t m = score_and_add(pass.stages, tile, scratch); m < modifiers.size(); ++m)
    modifiers[m]->apply(tile, scratch[m], nullptr);
  row_loops<T>().mask(tile, tile.s, pass.masked);
}

}  // namespace fovea::engine
