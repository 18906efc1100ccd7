// The second pass of backward on a graph, by key, with the transposed graph: dK and dV.
#include <algorithm>

#include "engine/graph/backward.h"
#include "engine/graph/transposed.h"

namespace fovea::engine {
namespace {

template <class T>
class KeyPass {
 public:
  explicit KeyPass(GraphGradients<T>& x)
      : x_(x), pass_(x.pass), g_(x.geometry), transposed_(transposed_of(x.graph)) {}

  void run(const Parallel& parallel) {
    const auto& score = *pass_.stages.score;
    const bool through = score.prepared_key_width() && score.partial_size();
    if (!x_.state.wants_key && !x_.state.wants_value && !through) return;
    const size_t chunk = graph_chunk(x_.graph.keys), chunks = (x_.graph.keys + chunk - 1) / chunk;
    Vector<T> partials(chunks * g_.key_heads * x_.state.partial_size, T(0));
    Vector<Worker> workers;
    workers.reserve(slots(parallel, chunks));
    for (size_t i = 0; i < slots(parallel, chunks); ++i) workers.emplace_back(x_);
    run_tickets(parallel, chunks, [&](size_t worker, size_t ticket) {
      const size_t end = std::min(x_.graph.keys, (ticket + 1) * chunk);
      for (size_t k0 = ticket * chunk; k0 < end; k0 += kPanelKeys) {
        for (size_t h = 0; h < g_.key_heads; ++h) {
          some_keys(workers[worker], h, k0, std::min(kPanelKeys, end - k0),
                    partials.data() + (ticket * g_.key_heads + h) * x_.state.partial_size);
        }
      }
    });
    x_.add_partials(partials, chunks, g_.group);
  }

 private:
  struct Worker {
    explicit Worker(const GraphGradients<T>& x) {
      memory = lay_out([&](Layout& layout) { lay(x, layout); });
    }
    void lay(const GraphGradients<T>& x, Layout& layout) {
      const Geometry& g = x.geometry;
      const size_t n = kMaxQueries * kRowPadding;
      q = layout.take<T>(kMaxQueries * x.pass.query_width());
      ds = layout.take<T>(n);
      raw = layout.take<T>(n);
      weights = layout.take<T>(kMaxQueries);
      dk = layout.take<T>(kPanelKeys * x.keys.key_width());
      dv = layout.take<T>(kPanelKeys * g.value_width);
      plain = layout.take<T>(kPanelKeys * g.key_width);
      d_plain = layout.take<T>(kPanelKeys * g.key_width);
      panel = layout.take<T>(x.pass.stages.score->panel_size());
    }
    Scratch memory;
    T *q, *ds, *raw, *weights, *dk, *dv, *plain, *d_plain, *panel;
  };

  void some_keys(Worker& w, size_t key_head, size_t k0, size_t nk, T* partial) {
    const auto& score = *pass_.stages.score;
    const bool wants_key =
        x_.state.wants_key || (score.prepared_key_width() && score.partial_size());
    for (size_t j = 0; j < nk; ++j) {
      if (wants_key) std::fill_n(w.dk + j * x_.keys.key_width(), x_.keys.key_width(), T(0));
      std::fill_n(w.dv + j * g_.value_width, g_.value_width, T(0));
      for (size_t h = key_head * g_.group; h < (key_head + 1) * g_.group; ++h)
        one_key(w, h, k0 + j, j, wants_key);
    }
    if (x_.state.wants_value) {
      store_rows(w.dv, g_.value_width, nk, g_.value_width, x_.state.gradients.value.dtype,
                 g_.key_rows(x_.state.gradients.value, 0, key_head), k0);
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
    if (x_.state.wants_key) {
      store_rows(d_rows, g_.key_width, nk, g_.key_width, x_.state.gradients.key.dtype,
                 g_.key_rows(x_.state.gradients.key, 0, key_head), k0);
    }
  }

  void one_key(Worker& w, size_t head, size_t key, size_t j, bool wants_key) {
    const auto& score = *pass_.stages.score;
    const size_t width = pass_.query_width(), key_head = head / g_.group,
                 base = head * x_.graph.edges;
    Tile<T> tile;
    tile.head = head;
    tile.k0 = key;
    tile.nk = 1;
    tile.k = x_.keys.k(key_head) + key * x_.keys.k_stride(key_head);
    tile.k_stride = x_.keys.k_stride(key_head);
    tile.value_width = g_.value_width;
    tile.finite = x_.finite;
    tile.q = w.q;
    tile.q_stride = width;
    tile.ds = w.ds;
    tile.raw = pass_.stages.score->needs_raw() ? w.raw : nullptr;
    tile.s_stride = kRowPadding;
    tile.dk = w.dk + j * x_.keys.key_width();
    tile.dk_stride = x_.keys.key_width();
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
        const QueryBlock<T>& block = x_.state.at(0, head, row / kMaxQueries);
        w.weights[r] = x_.weights[edge];
        T* ds = w.ds + r * kRowPadding;
        std::fill_n(ds, kRowPadding, T(0));
        ds[0] = x_.d_scores[edge];
        if (tile.raw) std::fill_n(w.raw + r * kRowPadding, kRowPadding, x_.raw[edge]);
        if (wants_key)
          std::copy_n(block.q + row % kMaxQueries * block.q_stride, width, w.q + r * width);
      }
      if (x_.state.wants_value) add_values(w, head, tile, j);
      if (!wants_key) continue;
      tile.first = false;
      if (score.fused_backward())
        score.backward(tile, false, false, nullptr);
      else
        score.backward_key(tile);
    }
  }

  void add_values(Worker& w, size_t head, const Tile<T>& tile, size_t j) {
    // The rows of the gradient of the output lie in one array, ours or the caller's, so the address of
    // the first block is enough.
    const QueryBlock<T>& block = x_.state.at(0, head, 0);
    row_loops<T>().gather(w.weights, tile.query_index, tile.nq, block.g, block.g_stride,
                          g_.value_width, Into::kAdd, w.dv + j * g_.value_width);
  }

  GraphGradients<T>& x_;
  const Pass<T>& pass_;
  const Geometry& g_;
  const std::shared_ptr<const Transposed> transposed_;
};

}  // namespace

template <class T>
void backward_by_key(GraphGradients<T>& x, const Parallel& parallel) {
  KeyPass<T>(x).run(parallel);
}
template void backward_by_key<float>(GraphGradients<float>&, const Parallel&);
template void backward_by_key<double>(GraphGradients<double>&, const Parallel&);

}  // namespace fovea::engine
