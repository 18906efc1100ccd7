// Scores that are an inner product of prepared rows: e = scale q.k.
#pragma once

#include <algorithm>

#include "engine/loops/product.h"
#include "engine/stage.h"

namespace fovea::engine {

template <class T>
class ProductScore : public ScoreStage<T> {
 public:
  ProductScore(size_t width, T scale) : products_(products<T>()), width_(width), scale_(scale) {}

  size_t panel_size() const override { return kPanelKeys * std::max<size_t>(1, width_); }
  void pack_keys(const T* rows, size_t stride, size_t nk, T* panel) const override {
    products_.pack(rows, stride, nk, width_, scale_, panel);
  }
  void score(Tile<T>& tile) const override {
    products_.score(tile, tile.q, tile.q_stride, width_, tile.k_panel, tile.addend, tile.s);
  }
  bool adds() const override { return true; }
  void backward_query(Tile<T>& tile) const override {
    products_.aggregate(tile, tile.ds, tile.k, tile.k_stride, width_, scale_, into(tile), nullptr,
                        tile.dq, tile.dq_stride);
  }
  void backward_key(Tile<T>& tile) const override {
    products_.transposed(tile, tile.ds, tile.q, tile.q_stride, width_, scale_, into(tile), tile.dk,
                         tile.dk_stride);
  }

 private:
  static Into into(const Tile<T>& tile) { return tile.first ? Into::kStore : Into::kAdd; }

  const Products<T>& products_;
  const size_t width_;
  const T scale_;
};

}  // namespace fovea::engine
