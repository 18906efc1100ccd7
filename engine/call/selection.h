// Stores selected weights: whole rows, the largest of each row, sums over rows, or one for each
// edge.
#pragma once

#include "engine/call/problem.h"
#include "engine/tile.h"
#include "fovea/engine.h"

namespace fovea::engine {

template <class T>
class SelectionWriter {
 public:
  SelectionWriter(const Geometry& geometry, const Selection& selection, const SelectedWeights& out);

  size_t heads() const { return heads_.size(); }
  size_t head(size_t slot) const { return heads_[slot]; }
  // Chosen queries, as runs of consecutive ones: their first slot, position and number.
  struct Run {
    size_t slot, q0, n;
  };
  const Vector<Run>& runs() const { return runs_; }
  size_t rows() const { return rows_; }
  bool sums() const { return selection_.column_sums; }

  // Zeros (and -1) for all results of a (batch, head slot).
  void clear(size_t batch, size_t slot) const;
  // Weights of one row, `tile` row r, with its statistics; masked places hold -infinity. `edge` is
  // the first edge's number (graphs). Tiles of a row come in ascending order of keys.
  void put(const Tile<T>& tile, size_t r, size_t slot, size_t row_slot, size_t edge) const;

 private:
  void put_largest(const Tile<T>& tile, const T* weights, T* best, int32_t* index) const;
  void put_spoiled(const Tile<T>& tile, const T* weights, T* best, int32_t* index) const;

  const Geometry& g_;
  const Selection& selection_;
  const SelectedWeights& out_;
  Vector<size_t> heads_;
  Vector<Run> runs_;
  size_t rows_ = 0;
};

}  // namespace fovea::engine
