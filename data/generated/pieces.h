// A curve of four straight pieces with jumps between them, measured with noise.
#pragma once

#include <cstdint>
#include <vector>

#include "data/formats/regression.h"

namespace fovea::data {

inline constexpr int64_t kStraightPieces = 4;

struct StraightPieces {
  Regression table;
  std::vector<int64_t> piece;  // of each row
};

StraightPieces generate_straight_pieces(int64_t rows, uint64_t seed);

}  // namespace fovea::data
