#include "data/generated/pieces.h"

#include "data/random.h"

namespace fovea::data {

StraightPieces generate_straight_pieces(int64_t rows, uint64_t seed) {
  constexpr double kStart[kStraightPieces] = {0, 1.5, -0.8, 1},
                   kSlope[kStraightPieces] = {4, -4, 3, -2};
  constexpr double kNoise = 0.05;
  Random random(mix(seed, 0x9EC3));
  StraightPieces out{.table = {.inputs = {"x"}, .target = "y"}, .piece = {}};
  for (int64_t i = 0; i < rows; ++i) {
    const double x = random.uniform();
    const auto piece = static_cast<int64_t>(x * kStraightPieces);
    out.table.x.push_back(x);
    out.table.y.push_back(kStart[piece] +
                          kSlope[piece] * (x - static_cast<double>(piece) / kStraightPieces) +
                          kNoise * random.normal());
    out.piece.push_back(piece);
  }
  return out;
}

}  // namespace fovea::data
