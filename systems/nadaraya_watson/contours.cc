#include "systems/nadaraya_watson/contours.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace fovea::systems::nadaraya_watson {
namespace {

struct Corner {
  double x = 0, y = 0, height = 0;
};

// Where the edge from a to b is at the level.
std::pair<double, double> crossing(const Corner& a, const Corner& b, double level) {
  const double share = (level - a.height) / (b.height - a.height);
  return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)};
}

}  // namespace

explain::Curve contour(const Grid& grid, double level, std::string label) {
  explain::Curve out;
  out.label = std::move(label);
  const size_t columns = grid.x.size();
  const auto corner = [&](size_t row, size_t column) {
    return Corner{grid.x[column], grid.y[row], grid.height[row * columns + column]};
  };
  for (size_t row = 0; row + 1 < grid.y.size(); ++row) {
    for (size_t column = 0; column + 1 < columns; ++column) {
      // Round the cell, so that crossings that follow each other belong together.
      const std::array<Corner, 4> corners = {corner(row, column), corner(row, column + 1),
                                             corner(row + 1, column + 1), corner(row + 1, column)};
      std::vector<std::pair<double, double>> crossings;
      for (size_t i = 0; i < corners.size(); ++i) {
        const Corner &a = corners[i], &b = corners[(i + 1) % corners.size()];
        if (!std::isfinite(a.height) || !std::isfinite(b.height)) continue;
        if ((a.height < level) != (b.height < level)) crossings.push_back(crossing(a, b, level));
      }
      for (size_t i = 0; i + 1 < crossings.size(); i += 2) {
        for (const auto& [x, y] : {crossings[i], crossings[i + 1]}) {
          out.x.push_back(x);
          out.y.push_back(y);
        }
        out.x.push_back(crossings[i + 1].first);
        out.y.push_back(std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  return out;
}

}  // namespace fovea::systems::nadaraya_watson
