// Pictures of several channels, each with a digit: the one that counts has a brighter ground.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/digits.h"

namespace fovea::data {

struct MarkedChannels {
  DigitSets sets;
  std::vector<int64_t> useful;  // of each picture, those for training first
};

// A JSON line for each picture: its file ("train" for the first `train`, then "t10k"), its place in it
// and the channel that counts.
std::string truth_lines(const std::vector<int64_t>& useful, int64_t train);

MarkedChannels generate_channels(int64_t channels, int64_t train, int64_t test, uint64_t seed);

}  // namespace fovea::data
