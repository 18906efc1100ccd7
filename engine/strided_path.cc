#include "engine/strided_path.h"

#include <algorithm>

#include "engine/forward.h"
#include "engine/view.h"

namespace fovea::engine {
namespace {

template <class T>
class StridedForward {
 public:
  StridedForward(const Problem& problem, const Geometry& geometry, const Result& result)
      : pass_(problem, geometry, nullptr),
        g_(geometry),
        result_(result),
        stride_(static_cast<size_t>(std::get<Strided>(problem.structure.all_of[0]).stride)),
        keys_(problem, geometry, *pass_.stages.score, Panels::kKeys) {}

  int64_t run(const Parallel& parallel) {
    const size_t heads = g_.batches * g_.heads;
    std::vector<Worker> workers;
    workers.reserve(slots(parallel, heads));
    for (size_t i = 0; i < slots(parallel, heads); ++i) workers.emplace_back(*this);
    run_tickets(parallel, heads, [&](size_t worker, size_t ticket) { head(workers[worker], ticket / g_.heads, ticket % g_.heads); });
    report_.check(g_);
    return report_.empty();
  }

 private:
  struct Worker {
    explicit Worker(const StridedForward& driver) {
      Layout sizes;
      lay(driver, sizes);
      memory = Scratch(sizes.size());
      Layout layout(memory.data());
      lay(driver, layout);
    }
    void lay(const StridedForward& driver, Layout& layout) {
      const Geometry& g = driver.g_;
      const auto& score = *driver.pass_.stages.score;
      const size_t members = g.max_keys / driver.stride_ + 1;  // of a residue
      tile = std::make_unique<TileScratch<T>>(driver.pass_, layout, kMaxQueries, kMaxKeys);
      run = driver.keys_.lay(layout, g.max_keys);
      o = layout.take<T>(g.max_queries * g.value_width);
      maximum = layout.take<T>(g.max_queries + kRowPadding);
      sum = layout.take<T>(g.max_queries + kRowPadding);
      panels = layout.take<T>((members / kPanelKeys + 1) * score.panel_size());
      k = layout.take<T>(kPanelKeys * g.key_width);
      v = layout.take<T>(members * g.value_width);
      q = layout.take<T>(kMaxQueries * g.query_width);
      index = layout.take<int32_t>(kMaxQueries);
      key_index = layout.take<int32_t>(members + kPanelKeys);
    }
    Scratch memory;
    std::unique_ptr<TileScratch<T>> tile;
    KeyRun<T> run;
    T *o, *maximum, *sum, *panels, *k, *v, *q;
    int32_t *index, *key_index;
  };

  void head(Worker& w, size_t batch, size_t head) {
    const size_t key_head = head / g_.group, queries = g_.query_count[batch];
    keys_.attach(&w.run, batch, key_head, 0);
    keys_.load(w.run, batch, key_head, 0, g_.key_limit[batch]);
    for (size_t q0 = 0; q0 < queries; q0 += kMaxQueries) band(w, batch, head, q0, std::min(kMaxQueries, queries - q0));
    for (size_t residue = 0; residue < std::min(stride_, queries); ++residue) members(w, batch, head, residue);
    store(w, batch, head);
  }

  // Adds the keys of a tile to the state of its rows.
  void meet(Worker& w, Tile<T>& tile) {
    tile.s_stride = tile_stride(tile.nk);
    score_tile(pass_, tile, w.tile->modifiers);
    pass_.stages.normaliser->weigh(tile);
    if (pass_.dropout) drop(pass_.dropout, tile, tile.s, tile.s);
    products<T>().aggregate(tile, tile.s, tile.v, tile.v_stride, tile.value_width, T(1), tile.first ? Into::kStore : Into::kCarry,
                            tile.rows.carry, tile.o, tile.o_stride);
    tile.first = false;
  }

  // Row r of the tile sees keys [begin(r), end(r)) of the sequence of keys the tile cuts at k0; false when no row sees any.
  template <class Begin, class End>
  bool mark(Worker& w, Tile<T>& tile, const Begin& begin, const End& end) {
    Marks& marks = *w.tile->marks;
    tile.begin = marks.begin;
    tile.end = marks.end;
    tile.masked = false;
    bool any = false;
    for (size_t r = 0; r < tile.nq; ++r) {
      size_t b = std::clamp(begin(r), tile.k0, tile.k0 + tile.nk) - tile.k0, e = std::clamp(end(r), tile.k0, tile.k0 + tile.nk) - tile.k0;
      if (b >= e) b = e = 0;
      marks.begin[r] = static_cast<int32_t>(b);
      marks.end[r] = static_cast<int32_t>(e);
      tile.masked = tile.masked || b > 0 || e < tile.nk;
      any = any || b < e;
    }
    return any;
  }

  // Queries [q0, q0 + nq) against keys i - stride <= j <= i.
  void band(Worker& w, size_t batch, size_t head, size_t q0, size_t nq) {
    Tile<T> tile;
    show_queries(pass_.problem, g_, *pass_.stages.score, batch, head, q0, nq, w.tile->q_plain, w.tile->q_prepared, &tile);
    tile.s = w.tile->s;
    tile.rows = w.tile->rows;
    tile.o = w.o + q0 * g_.value_width;
    tile.o_stride = tile.value_width = g_.value_width;
    tile.first = true;
    pass_.stages.normaliser->begin(tile);
    const size_t limit = g_.key_limit[batch], from = (q0 > stride_ ? q0 - stride_ : 0) / kPanelKeys * kPanelKeys;
    for (size_t k0 = from; k0 < std::min(limit, q0 + nq); k0 += kMaxKeys) {
      keys_.show(w.run, k0, std::min(kMaxKeys, std::min(limit, q0 + nq) - k0), &tile);
      const bool any = mark(w, tile, [&](size_t r) { return q0 + r > stride_ ? q0 + r - stride_ : 0; },
                            [&](size_t r) { return std::min(limit, q0 + r + 1); });
      if (any) meet(w, tile);
    }
    if (tile.first) std::fill_n(tile.o, nq * g_.value_width, T(0));
    std::copy_n(tile.rows.maximum, nq, w.maximum + q0);
    std::copy_n(tile.rows.sum, nq, w.sum + q0);
  }

  // Queries and keys of one residue: query a sees key b when a - b >= 2, beyond the band.
  void members(Worker& w, size_t batch, size_t head, size_t residue) {
    const auto count = [&](size_t n) { return n > residue ? (n - residue + stride_ - 1) / stride_ : 0; };
    const size_t queries = count(g_.query_count[batch]), keys = std::min(count(g_.key_limit[batch]), queries > 2 ? queries - 2 : 0);
    if (keys == 0) return;
    gather_keys(w, residue, keys);
    for (size_t a0 = 2; a0 < queries; a0 += kMaxQueries) {
      const size_t n = std::min(kMaxQueries, queries - a0);
      Tile<T> tile;
      tile.batch = batch;
      tile.head = head;
      tile.nq = n;
      tile.q = w.q;
      tile.q_stride = g_.query_width;
      tile.s = w.tile->s;
      tile.rows = w.tile->rows;
      tile.o = w.tile->o;
      tile.o_stride = tile.value_width = g_.value_width;
      tile.query_index = w.index;
      const Rows rows = g_.query_rows(pass_.problem.query, batch, head);
      for (size_t r = 0; r < n; ++r) {
        const size_t i = residue + (a0 + r) * stride_;
        w.index[r] = static_cast<int32_t>(i);
        load_rows(pass_.problem.query.dtype, rows, i, 1, g_.query_width, w.q + r * g_.query_width, g_.query_width);
        std::copy_n(w.o + i * g_.value_width, g_.value_width, tile.o + r * g_.value_width);
        tile.rows.maximum[r] = w.maximum[i];
        tile.rows.sum[r] = w.sum[i];
      }
      for (size_t b0 = 0; b0 < std::min(keys, a0 + n - 2); b0 += kMaxKeys) {
        tile.k0 = b0;
        tile.nk = std::min(kMaxKeys, std::min(keys, a0 + n - 2) - b0);
        tile.k_panel = w.panels + b0 / kPanelKeys * pass_.stages.score->panel_size();
        tile.key_index = w.key_index + b0;
        tile.v = w.v + b0 * g_.value_width;
        tile.v_stride = g_.value_width;
        tile.finite = row_loops<T>().finite(tile.v, tile.v_stride, tile.nk, g_.value_width);
        const bool any = mark(w, tile, [](size_t) { return size_t{0}; }, [&](size_t r) { return std::min(keys, a0 + r - 1); });
        if (any) meet(w, tile);
      }
      for (size_t r = 0; r < n; ++r) {
        const size_t i = static_cast<size_t>(w.index[r]);
        std::copy_n(tile.o + r * g_.value_width, g_.value_width, w.o + i * g_.value_width);
        w.maximum[i] = tile.rows.maximum[r];
        w.sum[i] = tile.rows.sum[r];
      }
    }
  }

  void gather_keys(Worker& w, size_t residue, size_t keys) {
    const auto& score = *pass_.stages.score;
    for (size_t b0 = 0; b0 < keys; b0 += kPanelKeys) {
      const size_t n = std::min(kPanelKeys, keys - b0);
      for (size_t c = 0; c < n; ++c) {
        const size_t j = residue + (b0 + c) * stride_;
        w.key_index[b0 + c] = static_cast<int32_t>(j);
        std::copy_n(w.run.k + j * w.run.k_stride, g_.key_width, w.k + c * g_.key_width);
        std::copy_n(w.run.v + j * w.run.v_stride, g_.value_width, w.v + (b0 + c) * g_.value_width);
      }
      score.pack_keys(w.k, g_.key_width, n, w.panels + b0 / kPanelKeys * score.panel_size());
    }
  }

  // The state of every row is complete: a block at a time to the results.
  void store(Worker& w, size_t batch, size_t head) {
    for (size_t q0 = 0; q0 < g_.query_count[batch]; q0 += kMaxQueries) {
      Tile<T> tile;
      tile.batch = batch;
      tile.head = head;
      tile.q0 = q0;
      tile.nq = std::min(kMaxQueries, g_.query_count[batch] - q0);
      tile.value_width = g_.value_width;
      tile.rows = w.tile->rows;
      show_output(pass_, result_, *w.tile, &tile);
      std::copy_n(w.maximum + q0, tile.nq, tile.rows.maximum);
      std::copy_n(w.sum + q0, tile.nq, tile.rows.sum);
      for (size_t r = 0; r < tile.nq; ++r) {
        std::copy_n(w.o + (q0 + r) * g_.value_width, g_.value_width, tile.o + r * tile.o_stride);
        w.tile->seen[r] = g_.key_limit[batch] > 0;  // key 0 or a neighbour is always within reach, unless lengths cut them off
        if (q0 + r > stride_ && g_.key_limit[batch] <= q0 + r - stride_) w.tile->seen[r] = sees_any(batch, head, q0 + r);
      }
      pass_.stages.normaliser->finish(tile, result_.lse ? w.tile->lse : nullptr);
      settle_rows(pass_, *w.tile, tile, report_);
      store_results(pass_, result_, *w.tile, tile);
    }
  }
  bool sees_any(size_t batch, size_t head, size_t i) const {
    for (size_t j = i % stride_; j < g_.key_limit[batch]; j += stride_) {
      if (pass_.structure->allows(batch, head, i, j)) return true;
    }
    return false;
  }

  Pass<T> pass_;
  const Geometry& g_;
  const Result& result_;
  const size_t stride_;
  KeyLoader<T> keys_;
  Report report_;
};

}  // namespace

std::string against_strided(const Problem& problem, const Geometry& g) {
  const auto& all = problem.structure.all_of;
  if (all.size() != 1 || !std::holds_alternative<Strided>(all[0])) return "the structure is not strided alone";
  if (!std::holds_alternative<Dot>(problem.score.kind) || !problem.score.modifiers.empty()) return "the score is not a plain dot";
  const Normaliser& n = problem.normaliser;
  if (std::holds_alternative<Sparsemax>(n) || std::holds_alternative<Entmax>(n) || std::holds_alternative<TopK>(n) ||
      std::holds_alternative<Hard>(n)) {
    return "the normaliser wants whole rows";
  }
  // Below, a masked tile reaches all of it anyway.
  if (std::get<Strided>(all[0]).stride < 4 || g.max_queries < 4 * kMaxQueries) return "short sequence or stride";
  return "";
}

template <class T>
int64_t strided_forward(const Problem& problem, const Geometry& geometry, const Result& result, const Parallel& parallel) {
  return StridedForward<T>(problem, geometry, result).run(parallel);
}
template int64_t strided_forward<float>(const Problem&, const Geometry&, const Result&, const Parallel&);
template int64_t strided_forward<double>(const Problem&, const Geometry&, const Result&, const Parallel&);

}  // namespace fovea::engine
