// The rows that stages read: in place where possible, otherwise converted and prepared in scratch;
// keys are packed.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/bf16/products.h"
#include "engine/call/problem.h"
#include "engine/loops/product.h"
#include "engine/loops/rows.h"
#include "engine/stage.h"
#include "engine/runtime/scratch.h"

namespace fovea::engine {

// A run of keys of one key head, starting at position `first` (a multiple of kPanelKeys), of which
// those before `loaded` are there already.
template <class T>
struct KeyRun {
  size_t first = 0, loaded = 0, capacity = 0;
  const T* k = nullptr;  // row of position `first`
  size_t k_stride = 0;
  const T* v = nullptr;
  size_t v_stride = 0;
  T* panels = nullptr;
  T* v_panels = nullptr;
  uint32_t* v_pairs = nullptr;  // values as bfloat16 products take them
  uint8_t* finite = nullptr;    // one for each panel: keys and values hold neither NaN nor infinity
  T *k_rows = nullptr, *k_plain = nullptr,
    *v_rows = nullptr;  // where rows are not used as they lie

  bool all_finite(size_t k0, size_t nk) const {
    const uint8_t* f = finite + (k0 - first) / kPanelKeys;
    return std::all_of(f, f + (nk + kPanelKeys - 1) / kPanelKeys, [](uint8_t x) { return x != 0; });
  }
};

enum class Panels { kKeys, kKeysAndPairs, kKeysAndValues };

template <class T>
class KeyLoader {
 public:
  KeyLoader(const Problem& problem, const Geometry& geometry, const ScoreStage<T>& score,
            Panels panels)
      : problem_(problem),
        g_(geometry),
        score_(score),
        panels_(panels),
        converts_(problem.key.dtype != dtype_of<T>()) {}

  size_t key_width() const {
    return score_.prepared_key_width() ? score_.prepared_key_width() : g_.key_width;
  }
  size_t value_panel() const { return kPanelKeys * g_.value_width; }
  size_t pairs_panel() const { return kPanelKeys / 2 * bf16_columns(g_.value_width); }
  // Of the panel with position k0, or null.
  const uint32_t* pairs(const KeyRun<T>& run, size_t k0) const {
    return run.v_pairs ? run.v_pairs + (k0 - run.first) / kPanelKeys * pairs_panel() : nullptr;
  }

  // Memory for a run of at most `keys` keys.
  KeyRun<T> lay(Layout& layout, size_t keys) const {
    const size_t panels = (keys + kPanelKeys - 1) / kPanelKeys;
    KeyRun<T> run;
    run.capacity = panels * kPanelKeys;
    run.panels = layout.take<T>(panels * score_.panel_size());
    if (panels_ == Panels::kKeysAndValues) run.v_panels = layout.take<T>(panels * value_panel());
    if (panels_ == Panels::kKeysAndPairs)
      run.v_pairs = layout.take<uint32_t>(panels * pairs_panel());
    run.finite = layout.take<uint8_t>(panels);
    if (score_.prepared_key_width()) run.k_rows = layout.take<T>(keys * key_width());
    if (converts_) {
      run.k_plain = layout.take<T>(keys * g_.key_width);
      run.v_rows = layout.take<T>(keys * g_.value_width);
    }
    return run;
  }

  // Points the run at a head's keys from `first` on.
  void attach(KeyRun<T>* run, size_t batch, size_t key_head, size_t first) const {
    run->first = run->loaded = first;
    if (converts_) {
      run->k = run->k_plain;
      run->k_stride = g_.key_width;
      run->v = run->v_rows;
      run->v_stride = g_.value_width;
    } else {
      const Rows k = g_.key_rows(problem_.key, batch, key_head),
                 v = g_.key_rows(problem_.value, batch, key_head);
      run->k = direct<T>(problem_.key.dtype, k, first);
      run->k_stride = static_cast<size_t>(k.stride);
      run->v = direct<T>(problem_.value.dtype, v, first);
      run->v_stride = static_cast<size_t>(v.stride);
    }
    if (score_.prepared_key_width()) {
      run->k = run->k_rows;
      run->k_stride = key_width();
    }
  }

  // Converts, prepares and packs positions [from, to), from a multiple of kPanelKeys.
  void load(const KeyRun<T>& run, size_t batch, size_t key_head, size_t from, size_t to) const {
    const Rows k = g_.key_rows(problem_.key, batch, key_head),
               v = g_.key_rows(problem_.value, batch, key_head);
    for (size_t at = from; at < to; at += kPanelKeys) {
      const size_t n = std::min(kPanelKeys, to - at), row = at - run.first,
                   panel = row / kPanelKeys;
      const T* plain = direct<T>(problem_.key.dtype, k, at);
      size_t plain_stride = static_cast<size_t>(k.stride);
      if (converts_) {
        load_rows(problem_.key.dtype, k, at, n, g_.key_width, run.k_plain + row * g_.key_width,
                  g_.key_width);
        load_rows(problem_.value.dtype, v, at, n, g_.value_width, run.v_rows + row * g_.value_width,
                  g_.value_width);
        plain = run.k_plain + row * g_.key_width;
        plain_stride = g_.key_width;
      }
      if (score_.prepared_key_width()) {
        score_.prepare_key(batch, key_head, at, n, plain, plain_stride,
                           run.k_rows + row * key_width());
      }
      const T *k_row = run.k + row * run.k_stride, *v_row = run.v + row * run.v_stride;
      if (score_.panel_size())
        score_.pack_keys(k_row, run.k_stride, n, run.panels + panel * score_.panel_size());
      if (panels_ == Panels::kKeysAndValues) {
        products<T>().pack(v_row, run.v_stride, n, g_.value_width, T(1),
                           run.v_panels + panel * value_panel());
      }
      if constexpr (sizeof(T) == 4) {
        if (run.v_pairs)
          bf16_products()->pack_values(v_row, run.v_stride, n, g_.value_width,
                                       run.v_pairs + panel * pairs_panel());
      }
      const auto& loops = row_loops<T>();
      run.finite[panel] =
          loops.finite(v_row, run.v_stride, n, g_.value_width) &&
          (panels_ != Panels::kKeysAndValues || loops.finite(k_row, run.k_stride, n, key_width()));
    }
  }

  // Loads what is not there of [begin, end), begin a multiple of kPanelKeys. A run too short for
  // all keys is begun anew at `begin` when it is full.
  void fill(KeyRun<T>* run, size_t batch, size_t key_head, size_t begin, size_t end) const {
    if (begin >= run->first && end <= run->loaded) return;
    if (begin < run->first || end > run->first + run->capacity) attach(run, batch, key_head, begin);
    const size_t to = (end + kPanelKeys - 1) / kPanelKeys * kPanelKeys;
    load(*run, batch, key_head, run->loaded, std::min(to, g_.key_limit[batch]));
    run->loaded = to;
  }

  // Puts keys [k0, k0 + nk) of the run in a tile.
  void show(const KeyRun<T>& run, size_t k0, size_t nk, Tile<T>* tile) const {
    const size_t row = k0 - run.first, panel = row / kPanelKeys;
    tile->k0 = k0;
    tile->nk = nk;
    tile->k = run.k + row * run.k_stride;
    tile->k_stride = run.k_stride;
    tile->v = run.v + row * run.v_stride;
    tile->v_stride = run.v_stride;
    tile->k_panel = run.panels + panel * score_.panel_size();
    tile->v_panel = run.v_panels ? run.v_panels + panel * value_panel() : nullptr;
    tile->finite = run.all_finite(k0, nk);
  }

 private:
  const Problem& problem_;
  const Geometry& g_;
  const ScoreStage<T>& score_;
  const Panels panels_;
  const bool converts_;
};

// Query rows [q0, q0 + nq) of a head, as the score wants them. `plain` and `prepared` are scratch
// of kMaxQueries rows.
template <class T>
void show_queries(const Problem& problem, const Geometry& g, const ScoreStage<T>& score,
                  size_t batch, size_t head, size_t q0, size_t nq, T* plain, T* prepared,
                  Tile<T>* tile) {
  const Rows rows = g.query_rows(problem.query, batch, head);
  tile->batch = batch;
  tile->head = head;
  tile->q0 = q0;
  tile->nq = nq;
  tile->query_offset = g.query_offset[batch];
  tile->q = direct<T>(problem.query.dtype, rows, q0);
  tile->q_stride = static_cast<size_t>(rows.stride);
  if (!tile->q) {
    load_rows(problem.query.dtype, rows, q0, nq, g.query_width, plain, g.query_width);
    tile->q = plain;
    tile->q_stride = g.query_width;
  }
  if (const size_t width = score.prepared_query_width()) {
    score.prepare_query(batch, head, q0, nq, tile->q, tile->q_stride, prepared);
    tile->q = prepared;
    tile->q_stride = width;
  }
}

}  // namespace fovea::engine
