// Attention on a graph in CSR: a query's keys are the columns of its row, in the order given,
// gathered.
#pragma once

#include "engine/tiles/forward.h"
#include "engine/runtime/parallel.h"

namespace fovea::engine {

// Rows and edges of the graph. Threads take rows in chunks, a ticket each (runtime/parallel.h); which
// rows make a chunk depends on the graph alone.
struct GraphView {
  explicit GraphView(const Geometry& geometry);

  Vector<int32_t> offsets_copy,
      columns_copy;  // where the views have strides; filled by what follows
  const int32_t* row_offsets;
  const int32_t* columns;
  size_t rows = 0, keys = 0, edges = 0, max_degree = 0;

  size_t begin(size_t row) const { return static_cast<size_t>(row_offsets[row]); }
  size_t degree(size_t row) const {
    return static_cast<size_t>(row_offsets[row + 1] - row_offsets[row]);
  }
};

// The number of rows of a chunk: so many that taking a ticket costs little beside the work, so few that
// every thread has some. It also bounds the number of partial sums.
inline size_t graph_chunk(size_t rows) { return std::max<size_t>(kMaxQueries, (rows + 127) / 128); }

// All keys of the problem, one key head after another, in the arithmetic type and prepared; not
// packed.
template <class T>
class GraphKeys {
 public:
  GraphKeys(const Pass<T>& pass, const Parallel& parallel);
  const T* k(size_t key_head) const { return heads_[key_head].k; }
  size_t k_stride(size_t key_head) const { return heads_[key_head].k_stride; }
  const T* v(size_t key_head) const { return heads_[key_head].v; }
  size_t v_stride(size_t key_head) const { return heads_[key_head].v_stride; }
  size_t key_width() const { return width_; }

 private:
  struct Head {
    const T *k, *v;
    size_t k_stride, v_stride;
  };
  size_t width_;
  ScratchArray<T> k_rows_, v_rows_;
  Vector<Head> heads_;
};

// The scores of one query row over all its edges, modifiers and masks applied.
template <class T>
class GraphRow : public InScratch {
 public:
  GraphRow(const Pass<T>& pass, const GraphView& graph, const GraphKeys<T>& keys, Layout& layout);

  // Points the tile (nq = 1, its query shown) at a row's edges; fills tile.s, and tile.raw and
  // `saved` where not null. True when the query sees any key.
  bool score(Tile<T>& tile, size_t row, const Vector<T*>& modifiers, const Vector<T*>& saved) const;
  // Gathers the keys of edges [from, from + n) of the tile's row and shows them in `part`.
  void show_keys(const Tile<T>& tile, size_t from, size_t n, Tile<T>* part) const;

 private:
  const Pass<T>& pass_;
  const GraphView& graph_;
  const GraphKeys<T>& keys_;
  T *k_rows_, *panels_;
  uint8_t* keep_;
  int32_t* range_;
  bool filters_;
};

// What one thread needs to go through rows: the tile of a row, and its scores.
template <class T>
struct GraphWorker {
  GraphWorker(const Pass<T>& pass, const GraphView& graph, const GraphKeys<T>& keys) {
    memory = lay_out([&](Layout& layout) {
      tile = std::make_unique<TileScratch<T>>(pass, layout, 1, graph.max_degree);
      row = std::make_unique<GraphRow<T>>(pass, graph, keys, layout);
    });
  }
  Scratch memory;
  std::unique_ptr<TileScratch<T>> tile;
  std::unique_ptr<GraphRow<T>> row;
};

template <class T>
int64_t graph_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                      const Parallel& parallel);
template <class T>
void graph_backward(const Problem& problem, const Geometry& geometry, const Result& saved,
                    const Gradients& gradients, const Parallel& parallel);

template <class T>
void graph_weights(const Problem& problem, const Geometry& geometry, const Selection& selection,
                   const SelectedWeights& out, const Parallel& parallel);

}  // namespace fovea::engine
