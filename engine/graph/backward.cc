// Backward on a graph, in two passes. The first goes by query row: weights again, gradients of scores,
// dQ; it stores what the second pass needs of each edge, O(edges x heads). The second goes by key,
// with the transposed graph: dK and dV. Every row of a result is written by one worker.
#include <algorithm>
#include <optional>

#include "engine/call/view.h"
#include "engine/graph/graph.h"
#include "engine/graph/transposed.h"
#include "engine/tiles/backward.h"
#include "engine/tiles/spoiled.h"

namespace fovea::engine {
namespace {

template <class T>
class GraphBackward {
 public:
  GraphBackward(const Problem& problem, const Geometry& geometry, const Result& saved,
                const Gradients& gradients, const Parallel& parallel)
      : state_(problem, geometry, saved, gradients),
        pass_(state_.pass),
        g_(geometry),
        gradients_(gradients),
        graph_(geometry),
        transposed_(transposed_of(graph_)),
        keys_(pass_, parallel),
        weights_(graph_.edges * g_.heads),
        d_scores_(graph_.edges * g_.heads),
        raw_(pass_.stages.score->needs_raw() ? graph_.edges * g_.heads : 0) {}

  BackwardState<T>& state() { return state_; }

  void run(const Parallel& parallel) {
    const auto& loops = row_loops<T>();
    for (size_t h = 0; h < g_.key_heads; ++h) {
      finite_ = finite_ &&
                loops.finite(keys_.k(h), keys_.k_stride(h), graph_.keys, keys_.key_width()) &&
                loops.finite(keys_.v(h), keys_.v_stride(h), graph_.keys, g_.value_width);
    }
    for (const auto& block : state_.blocks) finite_ = finite_ && block.finite;
    by_row(parallel);
    by_key(parallel);
  }

 private:
  struct RowWorker {
    explicit RowWorker(const GraphBackward& driver) {
      memory = lay_out([&](Layout& layout) { lay(driver, layout); });
    }
    void lay(const GraphBackward& driver, Layout& layout) {
      const size_t n = tile_stride(driver.graph_.max_degree) + kPanelKeys;
      row = std::make_unique<GraphRow<T>>(driver.pass_, driver.graph_, driver.keys_, layout);
      s = layout.take<T>(n);
      ds = layout.take<T>(n);
      dropped = layout.take<T>(n);
      raw = driver.pass_.stages.score->needs_raw() ? layout.take<T>(n) : nullptr;
      scores = driver.pass_.stages.normaliser->needs_scores() ? layout.take<T>(n) : nullptr;
      saved.clear();
      modifiers.clear();
      for (const auto& m : driver.pass_.stages.modifiers) {
        saved.push_back(m->keeps_tile() ? layout.take<T>(n) : nullptr);
        modifiers.push_back(layout.take<T>(m->row_scratch()));
      }
    }
    Scratch memory;
    std::unique_ptr<GraphRow<T>> row;
    T *s, *ds, *dropped, *raw, *scores;
    Vector<T*> saved, modifiers;
  };

  // A bias gradient may be shared between rows: then one worker adds to it.
  bool shares_bias() const {
    const auto& wanted = gradients_.score.modifiers;
    return std::any_of(wanted.begin(), wanted.end(), [](const Modifier& m) {
      const auto* bias = std::get_if<Bias>(&m);
      return bias && bias->bias;
    });
  }

  void by_row(const Parallel& parallel) {
    const size_t chunk =
        shares_bias() ? std::max<size_t>(1, graph_.rows)
                      : (graph_chunk(graph_.rows) + kMaxQueries - 1) / kMaxQueries * kMaxQueries;
    const size_t chunks = (graph_.rows + chunk - 1) / chunk, size = state_.partial_size;
    const size_t n_size = pass_.stages.normaliser->partial_size();
    Vector<T> partials(chunks * g_.heads * size, T(0));
    Vector<RowWorker> workers;
    workers.reserve(slots(parallel, chunks));
    for (size_t i = 0; i < slots(parallel, chunks); ++i) workers.emplace_back(*this);
    run_tickets(parallel, chunks, [&](size_t worker, size_t ticket) {
      const size_t end = std::min(graph_.rows, (ticket + 1) * chunk);
      for (size_t head = 0; head < g_.heads; ++head) {
        for (size_t q0 = ticket * chunk; q0 < end; q0 += kMaxQueries) {
          const size_t b = q0 / kMaxQueries;
          Tile<T> block;
          state_.show(0, head, b, &block);
          T* n_partial =
              n_size ? state_.normaliser_partials.data() + (head * state_.block_count + b) * n_size
                     : nullptr;
          for (size_t r = 0; r < block.nq; ++r) {
            one_row(workers[worker], block, r, partials.data() + (ticket * g_.heads + head) * size,
                    n_partial);
          }
          state_.at(0, head, b).touched = true;
        }
      }
    });
    add_partials(partials, chunks, size, 1);
  }

  void add_partials(const Vector<T>& partials, size_t chunks, size_t size, size_t group) {
    for (size_t c = 0; c < chunks; ++c) {
      for (size_t h = 0; h < g_.heads / group; ++h) {
        T* total = state_.total(0, h * group);
        for (size_t i = 0; i < size; ++i)
          total[i] += partials[(c * (g_.heads / group) + h) * size + i];
      }
    }
  }

  void one_row(RowWorker& w, const Tile<T>& block, size_t r, T* partial, T* n_partial) {
    const auto& [score, modifiers, normaliser] = pass_.stages;
    const auto& loops = row_loops<T>();
    const size_t row = block.q0 + r, head = block.head, key_head = head / g_.group,
                 n = modifiers.size();
    Tile<T> tile = block;
    tile.q0 = row;
    tile.nq = 1;
    tile.q += r * tile.q_stride;
    tile.g += r * tile.g_stride;
    if (tile.dq) tile.dq += r * tile.dq_stride;
    tile.stats += r * kStatistics;
    tile.row_term += r;
    if (tile.d_lse) tile.d_lse += r;
    tile.s = w.s;
    tile.ds = w.ds;
    tile.raw = w.raw;
    tile.finite = finite_;
    for (size_t m = 0; m < n; ++m) modifiers[m]->begin_rows(tile, w.modifiers[m]);
    const bool seen = w.row->score(tile, row, w.modifiers, w.saved);
    const size_t first = head * graph_.edges + graph_.begin(row);
    if (!seen) {
      std::fill_n(weights_.data() + first, tile.nk, T(0));
      std::fill_n(d_scores_.data() + first, tile.nk, T(0));
      if (tile.dq) std::fill_n(tile.dq, pass_.query_width(), T(0));
      return;
    }
    if (w.scores) std::copy_n(tile.s, tile.s_stride, w.scores);
    tile.scores = w.scores;
    std::optional<Spoiled<T>> spoiled;
    if (is_spoiled(tile.stats)) spoiled.emplace(tile, normaliser->face());
    normaliser->weights(tile);
    if (spoiled) spoiled->put(tile.s, tile.s_stride);
    loops.gather_dots(tile.g, tile.key_index, tile.nk, keys_.v(key_head), keys_.v_stride(key_head),
                      g_.value_width, tile.ds);
    if (pass_.dropout)
      drop(pass_.dropout, tile, tile.s, w.dropped);
    else
      std::copy_n(tile.s, tile.nk, w.dropped);
    std::copy_n(w.dropped, tile.nk, weights_.data() + first);
    T* const weights = tile.s;
    tile.s = w.dropped;
    T* part = partial + score->partial_size();
    for (size_t m = 0; m < n; ++m) {
      modifiers[m]->backward_weights(tile, w.modifiers[m],
                                     modifiers[m]->partial_size() ? part : nullptr);
      part += modifiers[m]->partial_size();
    }
    tile.s = weights;
    if (pass_.dropout) drop(pass_.dropout, tile, tile.ds, tile.ds);
    loops.mask(tile, tile.ds, T(0));
    if (normaliser->row_term() == RowTerm::kRows) {
      normaliser->row_terms(tile, state_.row_terms.data() + state_.row(0, head, row));
      if (n_partial) normaliser->backward_parameters(tile, n_partial);
    }
    normaliser->backward(tile);
    if (normaliser->face() == Face::kValue) loops.mask(tile, tile.ds, T(0));
    if (spoiled) spoiled->put(tile.ds, tile.s_stride);
    for (size_t m = n; m-- > 0;) {
      part -= modifiers[m]->partial_size();
      modifiers[m]->backward(tile, w.modifiers[m], w.saved[m],
                             modifiers[m]->partial_size() ? part : nullptr);
    }
    std::copy_n(tile.ds, tile.nk, d_scores_.data() + first);
    if (tile.raw) std::copy_n(tile.raw, tile.nk, raw_.data() + first);
    to_query(w, tile, score->partial_size() ? partial : nullptr);
    if (tile.dq) {
      for (size_t m = 0; m < n; ++m) modifiers[m]->backward_query(tile, w.modifiers[m]);
    }
  }

  void to_query(RowWorker& w, const Tile<T>& tile, T* partial) {
    const auto& score = *pass_.stages.score;
    if (!tile.dq && !partial) return;
    for (size_t from = 0; from < tile.nk; from += kMaxKeys) {
      Tile<T> part;
      w.row->show_keys(tile, from, std::min(kMaxKeys, tile.nk - from), &part);
      part.first = from == 0;
      if (score.fused_backward()) {
        score.backward(part, part.first, false, partial);
        continue;
      }
      if (partial) score.backward_parameters(part, partial);
      if (part.dq) score.backward_query(part);
    }
  }

  struct KeyWorker {
    explicit KeyWorker(const GraphBackward& driver) {
      memory = lay_out([&](Layout& layout) { lay(driver, layout); });
    }
    void lay(const GraphBackward& driver, Layout& layout) {
      const Geometry& g = driver.g_;
      const size_t n = kMaxQueries * kRowPadding;
      q = layout.take<T>(kMaxQueries * driver.pass_.query_width());
      ds = layout.take<T>(n);
      raw = layout.take<T>(n);
      weights = layout.take<T>(kMaxQueries);
      dk = layout.take<T>(kPanelKeys * driver.keys_.key_width());
      dv = layout.take<T>(kPanelKeys * g.value_width);
      plain = layout.take<T>(kPanelKeys * g.key_width);
      d_plain = layout.take<T>(kPanelKeys * g.key_width);
      panel = layout.take<T>(driver.pass_.stages.score->panel_size());
    }
    Scratch memory;
    T *q, *ds, *raw, *weights, *dk, *dv, *plain, *d_plain, *panel;
  };

  void by_key(const Parallel& parallel) {
    const auto& score = *pass_.stages.score;
    const bool through = score.prepared_key_width() && score.partial_size();
    if (!state_.wants_key && !state_.wants_value && !through) return;
    const size_t chunk = graph_chunk(graph_.keys), chunks = (graph_.keys + chunk - 1) / chunk;
    Vector<T> partials(chunks * g_.key_heads * state_.partial_size, T(0));
    Vector<KeyWorker> workers;
    workers.reserve(slots(parallel, chunks));
    for (size_t i = 0; i < slots(parallel, chunks); ++i) workers.emplace_back(*this);
    run_tickets(parallel, chunks, [&](size_t worker, size_t ticket) {
      const size_t end = std::min(graph_.keys, (ticket + 1) * chunk);
      for (size_t k0 = ticket * chunk; k0 < end; k0 += kPanelKeys) {
        for (size_t h = 0; h < g_.key_heads; ++h) {
          some_keys(workers[worker], h, k0, std::min(kPanelKeys, end - k0),
                    partials.data() + (ticket * g_.key_heads + h) * state_.partial_size);
        }
      }
    });
    add_partials(partials, chunks, state_.partial_size, g_.group);
  }

  void some_keys(KeyWorker& w, size_t key_head, size_t k0, size_t nk, T* partial) {
    const auto& score = *pass_.stages.score;
    const bool wants_key = state_.wants_key || (score.prepared_key_width() && score.partial_size());
    for (size_t j = 0; j < nk; ++j) {
      if (wants_key) std::fill_n(w.dk + j * keys_.key_width(), keys_.key_width(), T(0));
      std::fill_n(w.dv + j * g_.value_width, g_.value_width, T(0));
      for (size_t h = key_head * g_.group; h < (key_head + 1) * g_.group; ++h)
        one_key(w, h, k0 + j, j, wants_key);
    }
    if (state_.wants_value) {
      store_rows(w.dv, g_.value_width, nk, g_.value_width, gradients_.value.dtype,
                 g_.key_rows(gradients_.value, 0, key_head), k0);
    }
    if (!wants_key) return;
    const T* d_rows = w.dk;
    if (score.prepared_key_width()) {
      const Rows rows = g_.key_rows(pass_.problem.key, 0, key_head);
      load_rows(pass_.problem.key.dtype, rows, k0, nk, g_.key_width, w.plain, g_.key_width);
      score.unprepare_key(0, key_head, k0, nk, w.plain, g_.key_width, w.dk, w.d_plain, g_.key_width,
                          score.partial_size() ? partial : nullptr);
      d_rows = w.d_plain;
    }
    if (state_.wants_key) {
      store_rows(d_rows, g_.key_width, nk, g_.key_width, gradients_.key.dtype,
                 g_.key_rows(gradients_.key, 0, key_head), k0);
    }
  }

  void one_key(KeyWorker& w, size_t head, size_t key, size_t j, bool wants_key) {
    const auto& score = *pass_.stages.score;
    const size_t width = pass_.query_width(), key_head = head / g_.group,
                 base = head * graph_.edges;
    Tile<T> tile;
    tile.head = head;
    tile.k0 = key;
    tile.nk = 1;
    tile.k = keys_.k(key_head) + key * keys_.k_stride(key_head);
    tile.k_stride = keys_.k_stride(key_head);
    tile.value_width = g_.value_width;
    tile.finite = finite_;
    tile.q = w.q;
    tile.q_stride = width;
    tile.ds = w.ds;
    tile.raw = pass_.stages.score->needs_raw() ? w.raw : nullptr;
    tile.s_stride = kRowPadding;
    tile.dk = w.dk + j * keys_.key_width();
    tile.dk_stride = keys_.key_width();
    const size_t begin = transposed_->offsets[key], end = transposed_->offsets[key + 1];
    if (wants_key && begin < end && score.panel_size()) {
      score.pack_keys(tile.k, tile.k_stride, 1, w.panel);
      tile.k_panel = w.panel;
    }
    for (size_t from = begin; from < end; from += kMaxQueries) {
      tile.nq = std::min(kMaxQueries, end - from);
      tile.query_index = transposed_->rows.data() + from;
      for (size_t r = 0; r < tile.nq; ++r) {
        const size_t edge = base + static_cast<size_t>(transposed_->edges[from + r]);
        const size_t row = static_cast<size_t>(tile.query_index[r]);
        const QueryBlock<T>& block = state_.at(0, head, row / kMaxQueries);
        w.weights[r] = weights_[edge];
        T* ds = w.ds + r * kRowPadding;
        std::fill_n(ds, kRowPadding, T(0));
        ds[0] = d_scores_[edge];
        if (tile.raw) std::fill_n(w.raw + r * kRowPadding, kRowPadding, raw_[edge]);
        if (wants_key)
          std::copy_n(block.q + row % kMaxQueries * block.q_stride, width, w.q + r * width);
      }
      if (state_.wants_value) add_values(w, head, tile, j);
      if (!wants_key) continue;
      tile.first = false;
      if (score.fused_backward())
        score.backward(tile, false, false, nullptr);
      else
        score.backward_key(tile);
    }
  }

  void add_values(KeyWorker& w, size_t head, const Tile<T>& tile, size_t j) {
    // The rows of the gradient of the output lie in one array, ours or the caller's, so the address of
    // the first block is enough.
    const QueryBlock<T>& block = state_.at(0, head, 0);
    row_loops<T>().gather(w.weights, tile.query_index, tile.nq, block.g, block.g_stride,
                          g_.value_width, Into::kAdd, w.dv + j * g_.value_width);
  }

  BackwardState<T> state_;
  const Pass<T>& pass_;
  const Geometry& g_;
  const Gradients& gradients_;
  const GraphView graph_;
  const std::shared_ptr<const Transposed> transposed_;
  const GraphKeys<T> keys_;
  ScratchArray<T> weights_, d_scores_, raw_;
  bool finite_ = true;
};

}  // namespace

template <class T>
void graph_backward(const Problem& problem, const Geometry& g, const Result& saved,
                    const Gradients& gradients, const Parallel& parallel) {
  GraphBackward<T> driver(problem, g, saved, gradients, parallel);
  prepare_blocks(driver.state(), parallel);
  driver.run(parallel);
  finish_blocks(driver.state(), parallel);
}
template void graph_backward<float>(const Problem&, const Geometry&, const Result&,
                                    const Gradients&, const Parallel&);
template void graph_backward<double>(const Problem&, const Geometry&, const Result&,
                                     const Gradients&, const Parallel&);

}  // namespace fovea::engine
