#include "data/scales.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fovea::data {

Scales Scales::of(const Regression& table, const std::vector<int64_t>& rows) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const size_t inputs = table.inputs.size();
  Scales out{.low = std::vector<double>(inputs, kInfinity),
             .high = std::vector<double>(inputs, -kInfinity)};
  double sum = 0, squares = 0;
  for (const int64_t row : rows) {
    for (size_t i = 0; i < inputs; ++i) {
      const double x = table.x[static_cast<size_t>(row) * inputs + i];
      out.low[i] = std::min(out.low[i], x);
      out.high[i] = std::max(out.high[i], x);
    }
    const double y = table.y[static_cast<size_t>(row)];
    sum += y;
    squares += y * y;
  }
  const double count = std::max<double>(1, static_cast<double>(rows.size()));
  out.mean = sum / count;
  out.deviation = std::sqrt(std::max(0.0, squares / count - out.mean * out.mean));
  if (!(out.deviation > 1e-12)) out.deviation = 1;  // a constant
  return out;
}

std::vector<float> Scales::inputs(const std::vector<double>& x) const {
  std::vector<float> out;
  for (size_t i = 0; i < x.size(); ++i) {
    const double from = low[i % low.size()], to = high[i % low.size()];
    out.push_back(to > from ? static_cast<float>(2 * (x[i] - from) / (to - from) - 1) : 0.0f);
  }
  return out;
}

}  // namespace fovea::data
