// The first pass of backward on a graph, by query row: weights again, gradients of scores, dQ.
#include <algorithm>
#include <optional>

#include "engine/graph/backward.h"
#include "engine/tiles/spoiled.h"

namespace fovea::engine {
namespace {

template <class T>
class RowPass {
 public:
  explicit RowPass(GraphGradients<T>& x) : x_(x), pass_(x.pass), g_(x.geometry) {}

  void run(const Parallel& parallel) {
    const size_t chunk =
        shares_bias() ? std::max<size_t>(1, x_.graph.rows)
                      : (graph_chunk(x_.graph.rows) + kMaxQueries - 1) / kMaxQueries * kMaxQueries;
    const size_t chunks = (x_.graph.rows + chunk - 1) / chunk, size = x_.state.partial_size;
    const size_t n_size = pass_.stages.normaliser->partial_size();
    Vector<T> partials(chunks * g_.heads * size, T(0));
    Vector<Worker> workers;
    workers.reserve(slots(parallel, chunks));
    for (size_t i = 0; i < slots(parallel, chunks); ++i) workers.emplace_back(x_);
    run_tickets(parallel, chunks, [&](size_t worker, size_t ticket) {
      const size_t end = std::min(x_.graph.rows, (ticket + 1) * chunk);
      for (size_t head = 0; head < g_.heads; ++head) {
        for (size_t q0 = ticket * chunk; q0 < end; q0 += kMaxQueries) {
          const size_t b = q0 / kMaxQueries;
          Tile<T> block;
          x_.state.show(0, head, b, &block);
          T* n_partial = n_size ? x_.state.normaliser_partials.data() +
                                      (head * x_.state.block_count + b) * n_size
                                : nullptr;
          for (size_t r = 0; r < block.nq; ++r) {
            one_row(workers[worker], block, r, partials.data() + (ticket * g_.heads + head) * size,
                    n_partial);
          }
          x_.state.at(0, head, b).touched = true;
        }
      }
    });
    x_.add_partials(partials, chunks, 1);
  }

 private:
  struct Worker {
    explicit Worker(const GraphGradients<T>& x) {
      memory = lay_out([&](Layout& layout) { lay(x, layout); });
    }
    void lay(const GraphGradients<T>& x, Layout& layout) {
      const size_t n = tile_stride(x.graph.max_degree) + kPanelKeys;
      row = std::make_unique<GraphRow<T>>(x.pass, x.graph, x.keys, layout);
      s = layout.take<T>(n);
      ds = layout.take<T>(n);
      dropped = layout.take<T>(n);
      raw = x.pass.stages.score->needs_raw() ? layout.take<T>(n) : nullptr;
      scores = x.pass.stages.normaliser->needs_scores() ? layout.take<T>(n) : nullptr;
      saved.clear();
      modifiers.clear();
      for (const auto& m : x.pass.stages.modifiers) {
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
    const auto& wanted = x_.state.gradients.score.modifiers;
    return std::any_of(wanted.begin(), wanted.end(), [](const Modifier& m) {
      const auto* bias = std::get_if<Bias>(&m);
      return bias && bias->bias;
    });
  }

  void one_row(Worker& w, const Tile<T>& block, size_t r, T* partial, T* n_partial) {
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
    tile.finite = x_.finite;
    for (size_t m = 0; m < n; ++m) modifiers[m]->begin_rows(tile, w.modifiers[m]);
    const bool seen = w.row->score(tile, row, w.modifiers, w.saved);
    const size_t first = head * x_.graph.edges + x_.graph.begin(row);
    if (!seen) {
      std::fill_n(x_.weights.data() + first, tile.nk, T(0));
      std::fill_n(x_.d_scores.data() + first, tile.nk, T(0));
      if (tile.dq) std::fill_n(tile.dq, pass_.query_width(), T(0));
      return;
    }
    if (w.scores) std::copy_n(tile.s, tile.s_stride, w.scores);
    tile.scores = w.scores;
    std::optional<Spoiled<T>> spoiled;
    if (is_spoiled(tile.stats)) spoiled.emplace(tile, normaliser->face());
    normaliser->weights(tile);
    if (spoiled) spoiled->put(tile.s, tile.s_stride);
    loops.gather_dots(tile.g, tile.key_index, tile.nk, x_.keys.v(key_head),
                      x_.keys.v_stride(key_head), g_.value_width, tile.ds);
    if (pass_.dropout)
      drop(pass_.dropout, tile, tile.s, w.dropped);
    else
      std::copy_n(tile.s, tile.nk, w.dropped);
    std::copy_n(w.dropped, tile.nk, x_.weights.data() + first);
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
      normaliser->row_terms(tile, x_.state.row_terms.data() + x_.state.row(0, head, row));
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
    std::copy_n(tile.ds, tile.nk, x_.d_scores.data() + first);
    if (tile.raw) std::copy_n(tile.raw, tile.nk, x_.raw.data() + first);
    to_query(w, tile, score->partial_size() ? partial : nullptr);
    if (tile.dq) {
      for (size_t m = 0; m < n; ++m) modifiers[m]->backward_query(tile, w.modifiers[m]);
    }
  }

  void to_query(Worker& w, const Tile<T>& tile, T* partial) {
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

  GraphGradients<T>& x_;
  const Pass<T>& pass_;
  const Geometry& g_;
};

}  // namespace

template <class T>
void backward_by_row(GraphGradients<T>& x, const Parallel& parallel) {
  RowPass<T>(x).run(parallel);
}
template void backward_by_row<float>(GraphGradients<float>&, const Parallel&);
template void backward_by_row<double>(GraphGradients<double>&, const Parallel&);

}  // namespace fovea::engine
