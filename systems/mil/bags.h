// The bags that mil learns from: digits of which some are a nine, tables, folders of pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/bags.h"
#include "data/split.h"
#include "train/option_values.h"
#include "train/types.h"

namespace fovea::systems::mil {

struct BagSet {
  data::Bags bags;
  data::Splits splits;
  std::vector<std::vector<uint8_t>>
      key_instances;  // of each bag: 1 where the instance makes it positive; empty: not known
  int64_t side = 0;   // instances are side x side pictures; 0: rows of numbers
};

// The generated digits, as MNIST's folder, with the key instances of the bags made of them.
Written write_digits(const BagSet&, uint64_t seed);

// No path: generated digits. A folder of MNIST's files: its digits. Another folder:
// LABEL/BAG/pictures. A file: a CSV table.
BagSet read_bag_set(const Source& source, const OptionValues& options);

// A folder of pictures as one bag of `side` x `side` instances.
std::vector<float> picture_bag(const std::string& folder, int64_t side);

}  // namespace fovea::systems::mil
