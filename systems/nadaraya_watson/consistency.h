// Consistency: as observations are added and the bandwidth shrinks with them, the error falls towards the noise.
#pragma once

#include <cstdint>
#include <vector>

#include "systems/nadaraya_watson/model.h"

namespace fovea::systems::nadaraya_watson {

struct ErrorAtRows {
  int64_t rows;
  double error;  // root of the mean squared leave-one-out error; the mean over a few drawn parts
};

// For growing parts of the model's rows, up to all of them, or to a few thousand. The bandwidth of n of the N
// rows is h (N/n)^(1/(4 + inputs)), as the best one shrinks. The model has a fixed bandwidth.
std::vector<ErrorAtRows> errors_by_rows(const Model& model, const Shape& shape);

}  // namespace fovea::systems::nadaraya_watson
