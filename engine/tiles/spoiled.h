// Spoiled rows: those that see a score of NaN or +infinity. Forward writes NaN to their output and
// to their first statistic. When weights are computed again, the drivers write NaN for every key
// that such a row sees and 0 for the others, in place of what the normaliser computed. Such rows are
// rare; a tile without one costs a check of its statistics.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "engine/stage.h"

namespace fovea::engine {

template <class T>
bool is_spoiled(const T* statistics) {
  return std::isnan(statistics[0]);
}
template <class T>
bool any_spoiled(const T* statistics, size_t rows) {
  for (size_t r = 0; r < rows; ++r) {
    if (is_spoiled(statistics + r * kStatistics)) return true;
  }
  return false;
}

// The spoiled rows of a tile (by tile.stats), while tile.s holds scores and masked values.
template <class T>
class Spoiled {
 public:
  Spoiled(const Tile<T>& tile, Face face) : columns_(tile.padded_keys()) {
    constexpr T kMasked = -std::numeric_limits<T>::infinity();
    for (size_t r = 0; r < tile.nq; ++r) {
      if (!is_spoiled(tile.stats + r * kStatistics)) continue;
      rows_.push_back(r);
      const T* s = tile.s + r * tile.s_stride;
      for (size_t c = 0; c < columns_; ++c) {
        const bool within = c >= tile.row_begin(r) && c < tile.row_end(r);
        const bool kept =
            within && (!tile.masked || !tile.keep || tile.keep[r * tile.keep_stride + c] != 0);
        // A log-score of -infinity is a masked key too.
        const bool seen = kept && (face == Face::kValue || s[c] != kMasked);
        cells_.push_back(seen ? std::numeric_limits<T>::quiet_NaN() : T(0));
      }
    }
  }
  // Over the tile's weights, or their gradients.
  void put(T* cells, size_t stride) const {
    for (size_t i = 0; i < rows_.size(); ++i)
      std::copy_n(cells_.data() + i * columns_, columns_, cells + rows_[i] * stride);
  }

 private:
  const size_t columns_;
  std::vector<size_t> rows_;
  std::vector<T> cells_;
};

}  // namespace fovea::engine
