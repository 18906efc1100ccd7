#include "engine/paths/strided.h"

#include <algorithm>

#include "engine/call/view.h"
#include "engine/dispatch.h"
#include "engine/paths/strided_residues.h"
#include "engine/runtime/parallel.h"
#include "engine/tiles/forward.h"

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
        direct_(result.output && result.output.dtype == dtype_of<T>()),
        keys_(problem, geometry, *pass_.stages.score, Panels::kKeys) {}

  int64_t run(const Parallel& parallel) {
    const size_t heads = g_.batches * g_.heads;
    Vector<Worker> workers;
    workers.reserve(slots(parallel, heads));
    for (size_t i = 0; i < slots(parallel, heads); ++i) workers.emplace_back(*this);
    run_tickets(parallel, heads, [&](size_t worker, size_t ticket) {
      head(workers[worker], ticket / g_.heads, ticket % g_.heads);
    });
    report_.check(pass_.problem, g_);
    return report_.empty();
  }

 private:
  static constexpr size_t kTogether = ResidueRows<T>::kTogether;

  struct Worker {
    explicit Worker(const StridedForward& driver) {
      memory = lay_out([&](Layout& layout) { lay(driver, layout); });
    }
    void lay(const StridedForward& driver, Layout& layout) {
      const Geometry& g = driver.g_;
      tile = std::make_unique<TileScratch<T>>(driver.pass_, layout, kMaxQueries, kMaxKeys);
      run = driver.keys_.lay(layout,
                             std::min(g.max_keys, std::max<size_t>(1024, 4 * driver.stride_)));
      o = layout.take<T>(driver.direct_ ? 0 : g.max_queries * g.value_width);
      maximum = layout.take<T>(g.max_queries + kRowPadding);
      sum = layout.take<T>(g.max_queries + kRowPadding);
      rows = std::make_unique<ResidueRows<T>>(driver.pass_, driver.stride_, layout);
      sums = layout.take<T>(kTogether * kMaxQueries * g.value_width);
      index = layout.take<int32_t>(kMaxQueries);
      key_index = layout.take<int32_t>(rows->most());
    }
    Scratch memory;
    std::unique_ptr<TileScratch<T>> tile;
    KeyRun<T> run;
    std::unique_ptr<ResidueRows<T>> rows;
    T *o, *maximum, *sum, *sums;
    int32_t *index, *key_index;
    PrefetchList prefetch;
  };

  // Members of each residue first; the band then finds their state, completes it and stores the
  // results.
  void head(Worker& w, size_t batch, size_t head) {
    const size_t queries = g_.query_count[batch], residues = std::min(stride_, queries);
    keys_.attach(&w.run, batch, head / g_.group, 0);
    std::fill_n(w.maximum, queries, -std::numeric_limits<T>::infinity());
    std::fill_n(w.sum, queries, T(0));
    for (size_t r = 0; r < residues; r += kTogether)
      members(w, batch, head, r, std::min(kTogether, residues - r));
    for (size_t q0 = 0; q0 < queries; q0 += kMaxQueries)
      band(w, batch, head, q0, std::min(kMaxQueries, queries - q0));
  }

  // Where the rows of a head's output are summed: the result itself where it has the right type.
  T* output(const Worker& w, size_t batch, size_t head, size_t* stride) const {
    *stride = g_.value_width;
    if (!direct_) return w.o;
    const Rows rows = g_.query_rows(result_.output, batch, head);
    *stride = static_cast<size_t>(rows.stride);
    return direct<T>(result_.output.dtype, rows, 0);
  }

  // Adds the keys of a tile to the state of its rows.
  void meet(Worker& w, Tile<T>& tile) {
    tile.s_stride = tile_stride(tile.nk);
    score_tile(pass_, tile, w.tile->modifiers);
    pass_.stages.normaliser->weigh(tile);
    if (pass_.dropout) drop(pass_.dropout, tile, tile.s, tile.s);
    products<T>().aggregate(tile, tile.s, tile.v, tile.v_stride, tile.value_width, T(1),
                            tile.first ? Into::kStore : Into::kCarry, tile.rows.carry, tile.o,
                            tile.o_stride);
    tile.first = false;
  }

  // Row r of the tile sees keys [begin(r), end(r)) of the sequence of keys the tile cuts at k0;
  // false when no row sees any.
  template <class Begin, class End>
  bool mark(Worker& w, Tile<T>& tile, const Begin& begin, const End& end) {
    Marks& marks = *w.tile->marks;
    tile.begin = marks.begin;
    tile.end = marks.end;
    tile.masked = false;
    bool any = false;
    for (size_t r = 0; r < tile.nq; ++r) {
      size_t b = std::clamp(begin(r), tile.k0, tile.k0 + tile.nk) - tile.k0,
             e = std::clamp(end(r), tile.k0, tile.k0 + tile.nk) - tile.k0;
      if (b >= e) b = e = 0;
      marks.begin[r] = static_cast<int32_t>(b);
      marks.end[r] = static_cast<int32_t>(e);
      tile.masked = tile.masked || b > 0 || e < tile.nk;
      any = any || b < e;
    }
    return any;
  }

  // Queries and keys of `n` residues: query a sees key b when a - b >= 2, beyond the band.
  void members(Worker& w, size_t batch, size_t head, size_t residue, size_t n) {
    const auto count = [&](size_t rows, size_t r) {
      return rows > r ? (rows - r + stride_ - 1) / stride_ : 0;
    };
    const size_t most = count(g_.query_count[batch], residue);
    w.rows->gather_keys(batch, head / g_.group, residue, n,
                        std::min(count(g_.key_limit[batch], residue), most > 2 ? most - 2 : 0));
    for (size_t a0 = 2; a0 < most; a0 += kMaxQueries) {
      const size_t rows = std::min(kMaxQueries, most - a0);
      w.rows->gather_queries(batch, head, residue, n, a0, rows);
      for (size_t t = 0; t < n; ++t) {
        const size_t queries = count(g_.query_count[batch], residue + t);
        if (queries <= a0) continue;
        const size_t keys = std::min(count(g_.key_limit[batch], residue + t), queries - 2);
        some_members(w, batch, head, residue, t, a0, std::min(rows, queries - a0), keys);
      }
    }
  }

  // Rows [a0, a0 + rows) of residue + t, their first keys: state and output from nothing.
  void some_members(Worker& w, size_t batch, size_t head, size_t residue, size_t t, size_t a0,
                    size_t rows, size_t keys) {
    Tile<T> tile;
    tile.batch = batch;
    tile.head = head;
    tile.nq = rows;
    tile.q = w.rows->queries(t);
    tile.q_stride = g_.query_width;
    tile.s = w.tile->s;
    tile.rows = w.tile->rows;
    tile.o = w.sums;
    tile.o_stride = tile.value_width = g_.value_width;
    tile.query_index = w.index;
    tile.v_stride = g_.value_width;
    tile.finite = w.rows->finite(t);
    tile.first = true;
    const auto position = [&](size_t a) { return residue + t + a * stride_; };
    for (size_t r = 0; r < rows; ++r) w.index[r] = static_cast<int32_t>(position(a0 + r));
    pass_.stages.normaliser->begin(tile);
    const size_t end = std::min(keys, a0 + rows - 2);
    for (size_t b = 0; b < end; ++b) w.key_index[b] = static_cast<int32_t>(position(b));
    for (size_t b0 = 0; b0 < end; b0 += kMaxKeys) {
      tile.k0 = b0;
      tile.nk = std::min(kMaxKeys, end - b0);
      tile.k_panel = w.rows->keys(t, b0);
      tile.key_index = w.key_index + b0;
      tile.v = w.rows->values(t, b0);
      if (mark(
              w, tile, [](size_t) { return size_t{0}; },
              [&](size_t r) { return std::min(keys, a0 + r - 1); }))
        meet(w, tile);
    }
    if (tile.first) std::fill_n(tile.o, rows * g_.value_width, T(0));
    size_t stride;
    T* out = output(w, batch, head, &stride);
    for (size_t r = 0; r < rows; ++r) {
      const size_t i = position(a0 + r);
      std::copy_n(tile.o + r * g_.value_width, g_.value_width, out + i * stride);
      w.maximum[i] = tile.rows.maximum[r];
      w.sum[i] = tile.rows.sum[r];
    }
  }

  // Queries [q0, q0 + nq) against keys i - stride <= j <= i, on top of what the members left;
  // results are then complete.
  void band(Worker& w, size_t batch, size_t head, size_t q0, size_t nq) {
    Tile<T> tile;
    show_queries(pass_.problem, g_, *pass_.stages.score, batch, head, q0, nq, w.tile->q_plain,
                 w.tile->q_prepared, &tile);
    tile.s = w.tile->s;
    tile.rows = w.tile->rows;
    tile.value_width = g_.value_width;
    show_output(pass_, result_, *w.tile, &tile);
    if (!direct_) std::copy_n(w.o + q0 * g_.value_width, nq * g_.value_width, tile.o);
    pass_.stages.normaliser->begin(tile);
    std::copy_n(w.maximum + q0, nq, tile.rows.maximum);
    std::copy_n(w.sum + q0, nq, tile.rows.sum);
    // The first rows have no members further back.
    const size_t fresh = std::min(nq, 2 * stride_ > q0 ? 2 * stride_ - q0 : 0);
    for (size_t r = 0; r < fresh; ++r)
      std::fill_n(tile.o + r * tile.o_stride, g_.value_width, T(0));
    const size_t limit = g_.key_limit[batch], end = std::min(limit, q0 + nq);
    const size_t from = (q0 > stride_ ? q0 - stride_ : 0) / kPanelKeys * kPanelKeys;
    if (from < end) keys_.fill(&w.run, batch, head / g_.group, from, end);
    prefetch_after(w, batch, head, q0 + kMaxQueries);
    tile.prefetch = &w.prefetch;
    for (size_t k0 = from; k0 < end; k0 += kMaxKeys) {
      keys_.show(w.run, k0, std::min(kMaxKeys, end - k0), &tile);
      const bool any = mark(
          w, tile, [&](size_t r) { return q0 + r > stride_ ? q0 + r - stride_ : 0; },
          [&](size_t r) { return std::min(limit, q0 + r + 1); });
      if (any) meet(w, tile);
    }
    for (size_t r = 0; r < nq; ++r) {
      w.tile->seen[r] =
          limit > 0;  // key 0 or a neighbour is always within reach, unless lengths cut them off
      if (q0 + r > stride_ && limit <= q0 + r - stride_)
        w.tile->seen[r] = sees_any(batch, head, q0 + r);
    }
    pass_.stages.normaliser->finish(tile, result_.lse ? w.tile->lse : nullptr);
    settle_rows(pass_, *w.tile, tile, report_);
    store_results(pass_, result_, *w.tile, tile);
  }

  // What the band at q0 will want to read.
  void prefetch_after(Worker& w, size_t batch, size_t head, size_t q0) const {
    const Problem& p = pass_.problem;
    const size_t to = std::min(q0 + kMaxQueries, g_.query_count[batch]),
                 keys = std::min(q0 + kMaxQueries, g_.key_limit[batch]);
    const Rows k = g_.key_rows(p.key, batch, head / g_.group),
               v = g_.key_rows(p.value, batch, head / g_.group);
    w.prefetch.clear();
    prefetch_rows(p.key, k, w.run.loaded, keys, g_.key_width, &w.prefetch);
    prefetch_rows(p.value, v, w.run.loaded, keys, g_.value_width, &w.prefetch);
    prefetch_rows(p.query, g_.query_rows(p.query, batch, head), q0, to, g_.query_width,
                  &w.prefetch);
    if (direct_)
      prefetch_rows(result_.output, g_.query_rows(result_.output, batch, head), q0, to,
                    g_.value_width, &w.prefetch);
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
  const bool direct_;
  KeyLoader<T> keys_;
  Report report_;
};

Reason strided_declines(const Request& request) {
  const Problem& problem = request.problem;
  const Geometry& g = request.geometry;
  const auto& all = problem.structure.all_of;
  if (all.size() != 1 || !std::holds_alternative<Strided>(all[0]))
    return {"the structure is not strided alone"};
  if (!std::holds_alternative<Dot>(problem.score.kind) || !problem.score.modifiers.empty())
    return {"the score is not a plain dot"};
  const Normaliser& n = problem.normaliser;
  if (std::holds_alternative<Sparsemax>(n) || std::holds_alternative<Entmax>(n) ||
      std::holds_alternative<TopK>(n) || std::holds_alternative<Hard>(n)) {
    return {"the normaliser wants whole rows"};
  }
  if (g.has_offset()) return {"the queries do not start at the first key"};
  // Below, a masked tile reaches all of it anyway.
  if (std::get<Strided>(all[0]).stride < 4 || g.max_queries < 4 * kMaxQueries)
    return {"short sequence or stride"};
  if (request.task != Task::kBackward) return {};
  // Backward sorts positions by residue: what belongs to a position would have to be sorted too.
  if (problem.dropout_p > 0) return {"weights are dropped"};
  if (problem.key_lengths) return {"keys have lengths"};
  if (g.storage != DType::kFloat32 && g.storage != DType::kFloat64)
    return {"not float32 or float64"};
  if (g.max_queries != g.max_keys) return {"queries and keys differ in number"};
  return {};
}

template <class T>
int64_t strided_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                        const Parallel& parallel) {
  return StridedForward<T>(problem, geometry, result).run(parallel);
}

}  // namespace

constinit const Path kStridedPath{
    .id = "strided",
    .summary = "the band, then each residue as a causal problem of its own",
    .declines = strided_declines,
    .f32 = {.forward = strided_forward<float>, .backward = strided_backward<float>},
    .f64 = {.forward = strided_forward<double>, .backward = strided_backward<double>}};

}  // namespace fovea::engine
