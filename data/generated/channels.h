// Pictures of several channels, each with a digit: the one that counts has a brighter ground.
#pragma once

#include <cstdint>
#include <vector>

#include "data/digits.h"

namespace fovea::data {

struct MarkedChannels {
  DigitSets sets;
  std::vector<int64_t> useful;  // of each picture, those for training first
};

MarkedChannels generate_channels(int64_t channels, int64_t train, int64_t test, uint64_t seed);

}  // namespace fovea::data
