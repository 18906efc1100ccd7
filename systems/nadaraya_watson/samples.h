// The data without --data.
#pragma once

#include <cstdint>

#include "data/formats/regression.h"

namespace fovea::systems::nadaraya_watson {

data::Regression motorcycle();
// sin(x) + noise on [0, 2π], x drawn evenly: the true curve is known.
data::Regression sine(int64_t rows, uint64_t seed);

}  // namespace fovea::systems::nadaraya_watson
