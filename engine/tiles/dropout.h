// Dropout of weights, drawn by position (random.h): survivors are scaled by 1 / (1 - p), nothing is
// renormalised.
#pragma once

#include <cstdint>

#include "engine/tile.h"

namespace fovea::engine {

struct Dropout {
  uint64_t seed = 0;
  uint32_t threshold = 0;  // of 2^24; 0: none
  double scale = 1;
  explicit operator bool() const { return threshold != 0; }
};

Dropout make_dropout(double p, uint64_t seed);

// out[r][c] = in[r][c] kept and scaled, or 0, for the tile's rows; in and out may be the same.
template <class T>
void drop(const Dropout& dropout, const Tile<T>& tile, const T* in, T* out);

}  // namespace fovea::engine
