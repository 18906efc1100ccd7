// Rows of numbers and a number to find: a CSV table, or four straight pieces with noise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/csv.h"
#include "data/split.h"
#include "train/types.h"

namespace fovea::systems::mixture_of_experts {

inline constexpr int64_t kPieces = 4;

struct Rows {
  data::Regression table;
  std::vector<int64_t> piece = {};  // of each generated row
  data::Splits splits = {};
};

// `columns` are those of a table.
Rows read_rows(const Source& source, const data::Columns& columns);
Written write_rows(const Rows& rows);

// Inputs between -1 and 1, the target with mean 0 and deviation 1, by the training rows.
struct Scales {
  std::vector<double> low, high;
  double mean = 0, deviation = 1;

  static Scales of(const Rows& rows);
  std::vector<float> inputs(const std::vector<double>& x) const;
};

}  // namespace fovea::systems::mixture_of_experts
