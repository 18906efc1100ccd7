// What both systems of digit sets need: where digits come from, and numbers as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/digits.h"
#include "data/files/file.h"

namespace fovea::systems::deep_sets {

// MNIST's folder, or 4,000 and 2,000 generated digits if the path is empty. A path that is not a
// folder is refused; `instead` is a hint for a file: which option it may have been meant for.
data::DigitSets digits_from(const std::string& path, uint64_t seed, const std::string& instead);

// A hash of each picture: sets are drawn anew, so a run knows its training items by their pictures.
std::vector<uint64_t> keys_of(const data::Digits& pictures);

// The exception for a picture of another size than the run's.
data::FileError other_size(const std::string& path, int64_t found, int64_t trained);

// With a fixed number of decimals; zero has no sign.
std::string fixed(double value, int decimals);

}  // namespace fovea::systems::deep_sets
