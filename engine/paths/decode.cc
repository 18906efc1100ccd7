// Few queries against many keys. Keys are divided into parts of a fixed size, which are read once, in
// place (in their pages too) and in their stored type. The softmax states of the parts are merged in order.

#include <algorithm>
#include <cmath>

#include "engine/call/facts.h"
#include "engine/dispatch.h"
#include "engine/paths/decode_loops.h"
#include "engine/runtime/caches.h"
#include "engine/runtime/parallel.h"
#include "engine/tiles/forward.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

// With more rows than this, packing the keys pays off.
constexpr size_t kMostRows = 16;
// The same where there are few keys.
constexpr size_t kFewRows = 4, kFewestKeys = 256;
// Parts of a ticket: long enough that a merge is nothing, short enough that one head of a few
// thousand keys uses every core.
size_t parts_a_ticket(size_t keys) { return keys < 32768 ? 4 : 16; }

template <class T>
class Decode {
 public:
  Decode(const Problem& problem, const Geometry& geometry, const Result& result)
      : pass_(problem, geometry, nullptr),
        g_(geometry),
        result_(result),
        rows_(g_.group * g_.max_queries),
        parts_(std::max<size_t>(1, (g_.key_limit.largest() + kDecodePart - 1) / kDecodePart)),
        pieces_(pass_.structure->most_ranges()),
        states_(g_.batches * g_.key_heads * parts_ * pieces_ * rows_ * state_size()) {
    scale_ = static_cast<T>(
        dot_scale(std::get<Dot>(problem.score.kind), static_cast<int64_t>(g_.query_width)));
    if (!g_.paged || g_.paged->table.stride[1] == 1) return;
    for (size_t b = 0; b < g_.batches; ++b) {
      for (size_t p = 0; p * g_.page_size < g_.max_keys; ++p)
        table_copy_.push_back(static_cast<int32_t>(g_.page(b, p)));
    }
  }

  int64_t run(const Parallel& parallel) {
    const size_t heads = g_.batches * g_.key_heads, together = parts_a_ticket(g_.max_keys),
                 chunks = (parts_ + together - 1) / together, tickets = heads * chunks;
    Vector<Worker> workers;
    workers.reserve(slots(parallel, tickets));
    for (size_t i = 0; i < slots(parallel, tickets); ++i) workers.emplace_back(*this);
    run_tickets(parallel, tickets, [&](size_t worker, size_t ticket) {
      const size_t head = ticket / chunks, from = ticket % chunks * together;
      chunk(workers[worker], head / g_.key_heads, head % g_.key_heads, from,
            std::min(parts_, from + together));
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
  size_t state_size() const { return kDecodeState + g_.value_width; }
  // Of the rows that share a key head, those of one head after those of another.
  // `piece` counts parts and, within a part, the ranges of keys of a query.
  T* states(size_t batch, size_t key_head, size_t piece) const {
    return states_.data() +
           ((batch * g_.key_heads + key_head) * parts_ * pieces_ + piece) * rows_ * state_size();
  }
  const T* state(size_t batch, size_t head, size_t piece, size_t query) const {
    const size_t row = head % g_.group * g_.query_count[batch] + query;
    return states(batch, head / g_.group, piece) + row * state_size();
  }

  struct Worker {
    explicit Worker(const Decode& driver) {
      memory = lay_out([&](Layout& layout) { lay(driver, layout); });
    }
    void lay(const Decode& driver, Layout& layout) {
      tile = std::make_unique<TileScratch<T>>(driver.pass_, layout, 1, 1);
      q = layout.take<T>(kMostRows * driver.g_.query_width);
      scores = layout.take<T>(kMostRows * kDecodeScores);
    }
    Scratch memory;
    std::unique_ptr<TileScratch<T>> tile;
    T *q, *scores;
  };

  // The rows of a key head from row `first` on.
  DecodeRows rows_of(const View& view, size_t batch, size_t key_head, size_t first) const {
    const auto bytes = static_cast<int64_t>(size_of(g_.storage)), row = static_cast<int64_t>(first);
    if (!g_.paged) {
      const Rows rows = g_.key_rows(view, batch, key_head);
      return {.data = rows.data + row * rows.stride * bytes, .stride = rows.stride};
    }
    const View& table = g_.paged->table;
    const int64_t head = static_cast<int64_t>(key_head) * view.stride[2];
    const int32_t* pages = table_copy_.empty()
                               ? &element<int32_t>(table, static_cast<int64_t>(batch))
                               : table_copy_.data() + batch * static_cast<size_t>(table.size[1]);
    return {.data = static_cast<const char*>(view.data) + head * bytes,
            .stride = view.stride[1],
            .pages = pages,
            .page_stride = view.stride[0],
            .page_rows = g_.page_size,
            .first = first};
  }

  // Parts [from, to) of a key head.
  void chunk(Worker& w, size_t batch, size_t key_head, size_t from, size_t to) {
    const Problem& p = pass_.problem;
    const size_t queries = g_.query_count[batch], rows = g_.group * queries;
    if (rows == 0) return;
    for (size_t r = 0; r < rows; ++r) {
      const Rows of_head = g_.query_rows(p.query, batch, key_head * g_.group + r / queries);
      const int64_t at = static_cast<int64_t>(r % queries) * of_head.stride;
      decode_query(g_.storage, of_head.data + at * static_cast<int64_t>(size_of(g_.storage)),
                   g_.query_width, scale_, w.q + r * g_.query_width);
    }
    KeyRanges ranges[kMostRows];
    size_t last_key = 0;
    for (size_t r = 0; r < rows; ++r) {
      pass_.structure->ranges(batch, key_head * g_.group + r / queries, r % queries, &ranges[r]);
      if (ranges[r].count > 0)
        last_key = std::max(last_key, ranges[r].each[ranges[r].count - 1].end);
    }
    const bool far =
        g_.max_keys * (g_.key_width + g_.value_width) * size_of(g_.storage) > level2_bytes();
    const auto keys_from = [](size_t at, size_t end_of_keys) {
      return std::min(kDecodePart, std::max(at, end_of_keys) - at);
    };
    for (size_t piece = from * pieces_; piece < to * pieces_; ++piece) {
      const size_t part = piece / pieces_, n = piece % pieces_, k0 = part * kDecodePart,
                   k1 = k0 + kDecodePart;
      uint32_t first[kMostRows] = {}, last[kMostRows] = {};
      for (size_t r = 0; r < rows; ++r) {
        if (n >= ranges[r].count) continue;
        const auto& range = ranges[r].each[n];
        last[r] = static_cast<uint32_t>(std::clamp(range.end, k0, k1) - k0);
        first[r] = std::min(static_cast<uint32_t>(std::clamp(range.begin, k0, k1) - k0), last[r]);
      }
      T* const out = states(batch, key_head, piece);
      if (std::equal(first, first + rows, last)) {  // nothing is seen here
        for (size_t r = 0; r < rows; ++r) {
          T* state = out + r * state_size();
          state[0] = -std::numeric_limits<T>::infinity();
          state[1] = state[2] = 0;
        }
        continue;
      }
      decode_part<T>(g_.storage, {.query = w.q,
                                  .rows = rows,
                                  .width = g_.query_width,
                                  .value_width = g_.value_width,
                                  .key = rows_of(p.key, batch, key_head, k0),
                                  .value = rows_of(p.value, batch, key_head, k0),
                                  .begin = first,
                                  .end = last,
                                  .keys_ahead = far && part + 1 < to ? keys_from(k1, last_key) : 0,
                                  .values_ahead = far,
                                  .scores = w.scores,
                                  .states = out});
    }
  }

  // Parts in ascending order, each weighed by exp(its maximum - the largest).
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
      for (size_t c = 0; c < parts_ * pieces_; ++c)
        top = std::max(top, state(batch, head, c, i)[0]);
      T* o = tile.o + i * tile.o_stride;
      std::fill_n(o, g_.value_width, T(0));
      scratch.seen[i] = 0;
      for (size_t c = 0; c < parts_ * pieces_; ++c) {
        const T* part = state(batch, head, c, i);
        scratch.seen[i] |= part[2] != 0;
        if (part[1] == 0) continue;
        const T factor = std::exp(part[0] - top);
        sum += factor * part[1];
        for (size_t e = 0; e < g_.value_width; ++e) o[e] += factor * part[kDecodeState + e];
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
  const size_t rows_, parts_, pieces_;
  ScratchArray<T> states_;
  Vector<int32_t> table_copy_;  // of pages, where the table has strides
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
  if (make_structure(problem, g)->most_ranges() == 0)
    return {"the structure is not a few ranges of keys for each query"};
  return {};
}

template <class T>
int64_t decode_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                       const Parallel& parallel) {
  return Decode<T>(problem, geometry, result).run(parallel);
}

}  // namespace

constinit const Path kDecodePath{.id = "decode",
                                 .summary = "keys split into parts, read once where they lie",
                                 .declines = decode_declines,
                                 .reads_pages = true,
                                 .f32 = {.forward = decode_forward<float>},
                                 .f64 = {.forward = decode_forward<double>}};

}  // namespace fovea::engine
