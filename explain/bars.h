// Bars at 1, 2, 3, …, of which a slider chooses a row.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"

namespace fovea::explain {

struct BarRow {
  std::string label;
  std::vector<double> heights;
};

// `frame` has the titles. The slider starts at its first row; with one row there is no slider.
Plot bars(Plot frame, const std::string& slider_label, const std::vector<BarRow>& rows);

}  // namespace fovea::explain
