// The next token from its scores.
#pragma once

#include <cstdint>
#include <span>

#include "data/random.h"

namespace fovea::systems::next_word {

struct Sampling {
  double temperature = 0;  // 0: the best; of equal ones the first
  int64_t top_k = 0;       // only so many of the best ones; 0: all
  double top_p = 1;  // only the best that together have this probability (Holtzman et al. 2020)
};

// InvalidArgument where a score is not a number.
int64_t chosen(std::span<const float> scores, const Sampling& sampling, data::Random& random);

}  // namespace fovea::systems::next_word
