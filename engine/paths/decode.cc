// Few queries against many keys: keys are split into chunks of a fixed size, read once where they
// lie, and the chunks' softmax states are merged in order.

#include <algorithm>
#include <cmath>

#include "engine/call/facts.h"
#include "engine/dispatch.h"
#include "engine/runtime/parallel.h"
#include "engine/tiles/forward.h"
#include "engine/paths/row_scores.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

// More rows than this pay for packing the keys.
constexpr size_t kMostRows = 16;
// So do more than this with fewer keys.
constexpr size_t kFewRows = 4, kFewestKeys = 256;
// Keys of a ticket: long enough that a merge is nothing, short enough that one head of a few
// thousand keys uses every core. Within a ticket the next keys are asked for in time, so that where
// there are plenty it is longer.
size_t chunk_keys(size_t keys) { return keys < 32768 ? 1024 : 4096; }
// Values that are summed before more of the next keys are asked for.
constexpr size_t kPiece = 32;

template <class T>
class Decode {
 public:
  Decode(const Problem& problem, const Geometry& geometry, const Result& result)
      : pass_(problem, geometry, nullptr),
        g_(geometry),
        result_(result),
        converts_(problem.query.dtype != dtype_of<T>()),
        rows_(g_.group * g_.max_queries),
        chunk_keys_(chunk_keys(g_.max_keys)),
        chunks_((g_.max_keys + chunk_keys_ - 1) / chunk_keys_),
        states_(g_.batches * g_.key_heads * chunks_ * rows_ * state_size()) {
    scale_ = static_cast<T>(
        dot_scale(std::get<Dot>(problem.score.kind), static_cast<int64_t>(g_.query_width)));
  }

  int64_t run(const Parallel& parallel) {
    const size_t heads = g_.batches * g_.key_heads, tickets = heads * chunks_;
    Vector<Worker> workers;
    workers.reserve(slots(parallel, tickets));
    for (size_t i = 0; i < slots(parallel, tickets); ++i) workers.emplace_back(*this);
    run_tickets(parallel, tickets, [&](size_t worker, size_t ticket) {
      const size_t head = ticket / chunks_;
      chunk(workers[worker], head / g_.key_heads, head % g_.key_heads, ticket % chunks_);
    });
    run_tickets(parallel, heads, [&](size_t worker, size_t head) {
      for (size_t i = 0; i < g_.group; ++i) {
        merge(workers[std::min(worker, workers.size() - 1)], head / g_.key_heads,
              head % g_.key_heads * g_.group + i);
      }
    });
    report_.check(pass_.problem, g_);
    return report_.empty();
  }

 private:
  // A row's state after a chunk: maximum, sum, whether it saw a key, output.
  size_t state_size() const { return 3 + g_.value_width; }
  T* state(size_t batch, size_t head, size_t chunk, size_t query) const {
    const size_t key_head = head / g_.group, row = head % g_.group * g_.max_queries + query;
    return states_.data() +
           (((batch * g_.key_heads + key_head) * chunks_ + chunk) * rows_ + row) * state_size();
  }

  struct Worker {
    explicit Worker(const Decode& driver) {
      memory = lay_out([&](Layout& layout) { lay(driver, layout); });
    }
    void lay(const Decode& driver, Layout& layout) {
      const Geometry& g = driver.g_;
      tile = std::make_unique<TileScratch<T>>(driver.pass_, layout, kMostRows, kMaxKeys);
      q = layout.take<T>(kMostRows * g.query_width);
      k = layout.take<T>(driver.converts_ ? kMaxKeys * g.key_width : 0);
      v = layout.take<T>(driver.converts_ ? kMaxKeys * g.value_width : 0);
    }
    Scratch memory;
    std::unique_ptr<TileScratch<T>> tile;
    T *q, *k, *v;
  };

  void chunk(Worker& w, size_t batch, size_t key_head, size_t c) {
    const size_t queries = g_.query_count[batch], nq = g_.group * queries;
    const size_t from = c * chunk_keys_, to = std::min(from + chunk_keys_, g_.key_limit[batch]);
    if (nq == 0) return;
    const auto& normaliser = pass_.stages.normaliser;
    TileScratch<T>& scratch = *w.tile;
    Tile<T> tile;
    tile.batch = batch;
    tile.nq = nq;
    tile.q = w.q;
    tile.q_stride = g_.query_width;
    tile.s = scratch.s;
    tile.rows = scratch.rows;
    tile.o = scratch.o;
    tile.o_stride = tile.value_width = g_.value_width;
    for (size_t i = 0; i < g_.group; ++i) {
      load_rows(pass_.problem.query.dtype,
                g_.query_rows(pass_.problem.query, batch, key_head * g_.group + i), 0, queries,
                g_.query_width, w.q + i * queries * g_.query_width, g_.query_width);
    }
    for (size_t i = 0; i < nq * g_.query_width; ++i) w.q[i] *= scale_;
    normaliser->begin(tile);
    std::fill_n(scratch.seen, nq, uint8_t{0});
    tile.first = true;
    for (size_t k0 = from; k0 < to; k0 += kMaxKeys)
      part(w, tile, key_head, k0, std::min(kMaxKeys, to - k0), to);
    for (size_t r = 0; r < nq; ++r) {
      T* out = state(batch, key_head * g_.group + r / queries, c, r % queries);
      out[0] = tile.rows.maximum[r];
      out[1] = tile.rows.sum[r];
      out[2] = scratch.seen[r];
      if (tile.first)
        std::fill_n(out + 3, g_.value_width, T(0));
      else
        std::copy_n(tile.o + r * tile.o_stride, g_.value_width, out + 3);
    }
  }

  // Keys [k0, k0 + nk) of a ticket that ends with key `to`.
  void part(Worker& w, Tile<T>& tile, size_t key_head, size_t k0, size_t nk, size_t to) {
    const Problem& p = pass_.problem;
    const size_t queries = g_.query_count[tile.batch];
    Marks& marks = *w.tile->marks;
    tile.k0 = k0;
    tile.nk = nk;
    tile.s_stride = tile_stride(nk);
    tile.masked = false;
    tile.begin = marks.begin;
    tile.end = marks.end;
    bool any = false;
    for (size_t r = 0; r < tile.nq; ++r) {
      size_t b, e;
      pass_.structure->range(tile.batch, key_head * g_.group + r / queries, r % queries, &b, &e);
      b = std::clamp(b, k0, k0 + nk) - k0;
      e = std::clamp(e, k0, k0 + nk) - k0;
      if (b >= e) b = e = 0;
      marks.begin[r] = static_cast<int32_t>(b);
      marks.end[r] = static_cast<int32_t>(e);
      tile.masked = tile.masked || b > 0 || e < nk;
      w.tile->seen[r] |= b < e;
      any = any || b < e;
    }
    if (!any) return;
    const Rows k = g_.key_rows(p.key, tile.batch, key_head),
               v = g_.key_rows(p.value, tile.batch, key_head);
    tile.k = direct<T>(p.key.dtype, k, k0);
    tile.k_stride = static_cast<size_t>(k.stride);
    tile.v = direct<T>(p.value.dtype, v, k0);
    tile.v_stride = static_cast<size_t>(v.stride);
    if (converts_) {
      load_rows(p.key.dtype, k, k0, nk, g_.key_width, w.k, g_.key_width);
      load_rows(p.value.dtype, v, k0, nk, g_.value_width, w.v, g_.value_width);
      tile.k = w.k;
      tile.k_stride = g_.key_width;
      tile.v = w.v;
      tile.v_stride = g_.value_width;
    }
    row_scores<T>({tile.q, tile.q_stride, tile.nq, tile.k, tile.k_stride, nk, g_.query_width,
                   tile.s, tile.s_stride, tile.v, tile.v_stride, g_.value_width});
    row_loops<T>().mask(tile, tile.s, pass_.masked);
    pass_.stages.normaliser->weigh(tile);
    tile.finite = !tile.masked || row_loops<T>().finite(tile.v, tile.v_stride, nk, g_.value_width);
    sum_values(tile, converts_ ? 0 : to - (k0 + nk));
    tile.first = false;
  }

  // The memory would rest while values are summed: meanwhile the keys after these are asked for, as
  // far as there are `left` of them.
  void sum_values(const Tile<T>& tile, size_t left) const {
    const size_t step = tile.masked || left == 0 ? tile.nk : kPiece;
    Tile<T> piece = tile;
    for (size_t from = 0; from < tile.nk; from += step) {
      const size_t asked = std::min(from + step, left);
      for (size_t i = from; i < asked; ++i) {
        const T* key = tile.k + (tile.nk + i) * tile.k_stride;
        for (size_t e = 0; e < g_.key_width; e += 64 / sizeof(T)) __builtin_prefetch(key + e, 0, 2);
      }
      piece.nk = std::min(step, tile.nk - from);
      const Into into = from > 0 ? Into::kAdd : tile.first ? Into::kStore : Into::kCarry;
      products<T>().aggregate(piece, tile.s + from, tile.v + from * tile.v_stride, tile.v_stride,
                              g_.value_width, T(1), into, tile.rows.carry, tile.o, tile.o_stride);
    }
  }

  // Chunks in ascending order, each weighed by exp(its maximum - the largest).
  void merge(Worker& w, size_t batch, size_t head) {
    TileScratch<T>& scratch = *w.tile;
    Tile<T> tile;
    tile.batch = batch;
    tile.head = head;
    tile.nq = g_.query_count[batch];
    tile.value_width = g_.value_width;
    tile.rows = scratch.rows;
    show_output(pass_, result_, scratch, &tile);
    for (size_t i = 0; i < tile.nq; ++i) {
      T top = -std::numeric_limits<T>::infinity(), sum = 0;
      for (size_t c = 0; c < chunks_; ++c) top = std::max(top, state(batch, head, c, i)[0]);
      T* o = tile.o + i * tile.o_stride;
      std::fill_n(o, g_.value_width, T(0));
      scratch.seen[i] = 0;
      for (size_t c = 0; c < chunks_; ++c) {
        const T* part = state(batch, head, c, i);
        scratch.seen[i] |= part[2] != 0;
        if (part[1] == 0) continue;
        const T factor = std::exp(part[0] - top);
        sum += factor * part[1];
        for (size_t e = 0; e < g_.value_width; ++e) o[e] += factor * part[3 + e];
      }
      tile.rows.maximum[i] = top;
      tile.rows.sum[i] = sum;
    }
    pass_.stages.normaliser->finish(tile, result_.lse ? scratch.lse : nullptr);
    settle_rows(pass_, scratch, tile, report_);
    store_results(pass_, result_, scratch, tile);
  }

  Pass<T> pass_;
  const Geometry& g_;
  const Result& result_;
  const bool converts_;
  const size_t rows_, chunk_keys_, chunks_;
  ScratchArray<T> states_;
  T scale_;
  Report report_;
};

Reason decode_declines(const Request& request) {
  const Problem& problem = request.problem;
  const Geometry& g = request.geometry;
  if (g.graph) return {"the structure is a graph"};
  if (!std::holds_alternative<Dot>(problem.score.kind) || !problem.score.modifiers.empty())
    return {"the score is not a plain dot"};
  if (!std::holds_alternative<Softmax>(problem.normaliser))
    return {"the normaliser is not softmax"};
  if (problem.dropout_p > 0) return {"weights are dropped"};
  if (g.group * g.max_queries > kMostRows) {
    return {"%zu query rows share a key head, at most %zu", g.group * g.max_queries, kMostRows};
  }
  if (g.max_keys < kFewestKeys && g.group * g.max_queries > kFewRows) {
    return {"%zu keys, at least %zu for more than a few query rows", g.max_keys, kFewestKeys};
  }
  if (make_structure(problem, g)->irregular())
    return {"the structure is not one range of keys for each query"};
  return {};
}

template <class T>
int64_t decode_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                       const Parallel& parallel) {
  return Decode<T>(problem, geometry, result).run(parallel);
}

}  // namespace

constinit const Path kDecodePath{.id = "decode",
                                 .summary = "keys split into chunks, read once where they lie",
                                 .declines = decode_declines,
                                 .f32 = {.forward = decode_forward<float>},
                                 .f64 = {.forward = decode_forward<double>}};

}  // namespace fovea::engine
