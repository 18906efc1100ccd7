#include "engine/graph/graph.h"

#include <algorithm>

#include "engine/call/view.h"

namespace fovea::engine {
namespace {

// A view's int32 elements one after another.
const int32_t* contiguous(const View& view, Vector<int32_t>* copy) {
  if (view.stride[0] == 1) return static_cast<const int32_t*>(view.data);
  for (int64_t i = 0; i < view.size[0]; ++i) copy->push_back(element<int32_t>(view, i));
  return copy->data();
}

}  // namespace

GraphView::GraphView(const Geometry& geometry)
    : row_offsets(contiguous(geometry.graph->row_offsets, &offsets_copy)),
      columns(contiguous(geometry.graph->columns, &columns_copy)),
      rows(geometry.query_count[0]),
      keys(geometry.key_count[0]),
      edges(static_cast<size_t>(geometry.graph->columns.size[0])) {
  for (size_t i = 0; i < rows; ++i) max_degree = std::max(max_degree, degree(i));
}

template <class T>
GraphKeys<T>::GraphKeys(const Pass<T>& pass, const Parallel& parallel) {
  const Geometry& g = pass.geometry;
  const Problem& p = pass.problem;
  const auto& score = *pass.stages.score;
  const size_t n = g.key_count[0], prepared = score.prepared_key_width();
  const bool converts = p.key.dtype != dtype_of<T>();
  width_ = prepared ? prepared : g.key_width;
  if (converts || prepared) k_rows_ = ScratchArray<T>(n * g.key_heads * width_);
  if (converts) v_rows_ = ScratchArray<T>(n * g.key_heads * g.value_width);
  for (size_t h = 0; h < g.key_heads; ++h) {
    const Rows k = g.key_rows(p.key, 0, h), v = g.key_rows(p.value, 0, h);
    Head head{direct<T>(p.key.dtype, k, 0), direct<T>(p.value.dtype, v, 0),
              static_cast<size_t>(k.stride), static_cast<size_t>(v.stride)};
    if (k_rows_.data()) head.k = k_rows_.data() + h * n * width_, head.k_stride = width_;
    if (converts) head.v = v_rows_.data() + h * n * g.value_width, head.v_stride = g.value_width;
    heads_.push_back(head);
  }
  if (!converts && !prepared) return;
  const size_t chunks = (n + kPanelKeys - 1) / kPanelKeys;
  Vector<ScratchArray<T>> plain(slots(parallel, chunks * g.key_heads));
  for (auto& s : plain) s = ScratchArray<T>(kPanelKeys * g.key_width);
  run_tickets(parallel, chunks * g.key_heads, [&](size_t worker, size_t ticket) {
    const size_t h = ticket / chunks, from = ticket % chunks * kPanelKeys,
                 m = std::min(kPanelKeys, n - from);
    const Rows k = g.key_rows(p.key, 0, h), v = g.key_rows(p.value, 0, h);
    T* out = k_rows_.data() + (h * n + from) * width_;
    if (converts) {
      load_rows(p.value.dtype, v, from, m, g.value_width,
                v_rows_.data() + (h * n + from) * g.value_width, g.value_width);
    }
    if (!prepared) return load_rows(p.key.dtype, k, from, m, g.key_width, out, width_);
    const T* rows = direct<T>(p.key.dtype, k, from);
    size_t stride = static_cast<size_t>(k.stride);
    if (!rows) {
      load_rows(p.key.dtype, k, from, m, g.key_width, plain[worker].data(), g.key_width);
      rows = plain[worker].data();
      stride = g.key_width;
    }
    score.prepare_key(0, h, from, m, rows, stride, out);
  });
}

template <class T>
GraphRow<T>::GraphRow(const Pass<T>& pass, const GraphView& graph, const GraphKeys<T>& keys,
                      Layout& layout)
    : pass_(pass), graph_(graph), keys_(keys) {
  k_rows_ = layout.take<T>(kMaxKeys * keys.key_width());
  panels_ = layout.take<T>(kMaxKeys / kPanelKeys * pass.stages.score->panel_size());
  keep_ = layout.take<uint8_t>(graph.max_degree);
  range_ = layout.take<int32_t>(2);
  // Other structures beside the graph, or lengths, drop edges.
  filters_ =
      pass.problem.structure.all_of.size() > 1 || static_cast<bool>(pass.problem.key_lengths);
}

template <class T>
void GraphRow<T>::show_keys(const Tile<T>& tile, size_t from, size_t n, Tile<T>* part) const {
  const size_t head = tile.head / pass_.geometry.group, width = keys_.key_width(),
               stride = keys_.k_stride(head);
  const T* k = keys_.k(head);
  *part = tile;
  part->key_index = tile.key_index + from;
  part->edge0 = tile.edge0 + from;
  part->k0 = 0;
  part->nk = n;
  part->s = tile.s + from;
  if (tile.ds) part->ds = tile.ds + from;
  if (tile.raw) part->raw = tile.raw + from;
  if (tile.masked) {
    part->keep = tile.keep + from;
    range_[1] = static_cast<int32_t>(n);
    part->end = range_ + 1;
  }
  for (size_t c = 0; c < n; ++c)
    std::copy_n(k + static_cast<size_t>(part->key_index[c]) * stride, width, k_rows_ + c * width);
  part->k = k_rows_;
  part->k_stride = width;
  part->k_panel = panels_;
  if (const size_t size = pass_.stages.score->panel_size()) {
    for (size_t c = 0; c < n; c += kPanelKeys) {
      pass_.stages.score->pack_keys(k_rows_ + c * width, width, std::min(kPanelKeys, n - c),
                                    panels_ + c / kPanelKeys * size);
    }
  }
}

template <class T>
bool GraphRow<T>::score(Tile<T>& tile, size_t row, const Vector<T*>& modifiers,
                        const Vector<T*>& saved) const {
  const auto& stages = pass_.stages;
  const size_t n = graph_.degree(row);
  tile.key_index = graph_.columns + graph_.begin(row);
  tile.edge0 = graph_.begin(row);
  tile.k0 = 0;
  tile.nk = n;
  tile.s_stride = tile_stride(graph_.max_degree);
  tile.masked = filters_;
  tile.keep = nullptr;
  bool seen = n > 0;
  if (filters_) {
    seen = false;
    for (size_t c = 0; c < n; ++c) {
      keep_[c] = pass_.structure->allows(0, tile.head, row, static_cast<size_t>(tile.key_index[c]));
      seen = seen || keep_[c];
    }
    range_[0] = 0;
    range_[1] = static_cast<int32_t>(n);
    tile.begin = range_;
    tile.end = range_ + 1;
    tile.keep = keep_;
    tile.keep_stride = graph_.max_degree;
  }
  for (size_t from = 0; from < n; from += kMaxKeys) {
    Tile<T> part;
    show_keys(tile, from, std::min(kMaxKeys, n - from), &part);
    stages.score->score(part);
    if (tile.raw) std::copy_n(part.s, part.nk, part.raw);
    for (size_t m = 0; m < stages.modifiers.size(); ++m) {
      stages.modifiers[m]->apply(part, modifiers[m],
                                 saved.empty() || !saved[m] ? nullptr : saved[m] + from);
    }
  }
  if (filters_) range_[1] = static_cast<int32_t>(n);
  row_loops<T>().mask(tile, tile.s, pass_.masked);
  return seen;
}

template class GraphKeys<float>;
template class GraphKeys<double>;
template class GraphRow<float>;
template class GraphRow<double>;

}  // namespace fovea::engine
