// Pictures and their classes: IDX files as MNIST comes, or a folder of PNG and JPEG files for each
// class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/digits.h"

namespace fovea::data {

struct Pictures {
  int64_t channels = 1, side = 0;    // each is [channels, side, side]
  std::vector<uint8_t> pixels = {};  // one picture after another
  std::vector<int64_t> labels = {};  // numbers of classes
  std::vector<std::string> classes = {};
  int64_t own_test = 0;  // so many at the end are the set's own test pictures; 0: it has none

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t picture_size() const { return channels * side * side; }
};

// A set with separate files for testing: the training pictures, then those.
Pictures pictures_of(const DigitSets& sets, const std::string& path);
DigitSets digit_sets_of(const Pictures& pictures);
// IDX files where the folder has them; otherwise a folder for each class, its pictures made grey and
// scaled to side x side.
Pictures read_pictures(const std::string& folder, int64_t side);
// One picture: a file, or a folder of as many files as there are channels, in the order of their
// names.
std::vector<uint8_t> read_picture(const std::string& path, int64_t channels, int64_t side);

// Puts the labels of pictures read from `path` in terms of the classes of a run; a size or a class
// that the run does not know is refused.
void arrange(Pictures& pictures, const Pictures& wanted, const std::string& path);

}  // namespace fovea::data
