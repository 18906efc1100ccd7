// Lines of equal height of a function of two inputs, known on a grid.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"

namespace fovea::systems::nadaraya_watson {

struct Grid {
  std::vector<double> x, y;    // ascending
  std::vector<double> height;  // [y, x]; a number that is not finite: not known there
};

// The line at `level`, by marching squares: pieces with gaps between them.
explain::Curve contour(const Grid& grid, double level, std::string label);

}  // namespace fovea::systems::nadaraya_watson
