// Numbers of a table as inputs of a network: inputs between -1 and 1, the target with mean 0 and
// standard deviation 1, computed from the training rows.
#pragma once

#include <cstdint>
#include <vector>

#include "data/formats/regression.h"

namespace fovea::data {

struct Scales {
  std::vector<double> low, high;  // of each input
  double mean = 0, deviation = 1;

  static Scales of(const Regression& table, const std::vector<int64_t>& rows);
  // Rows one after another, as the table has them. A constant input is 0.
  std::vector<float> inputs(const std::vector<double>& x) const;
  float target(double y) const { return static_cast<float>((y - mean) / deviation); }
  double in_units(double scaled) const { return mean + deviation * scaled; }
};

}  // namespace fovea::data
