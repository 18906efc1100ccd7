// What reports call a figure, and how they write it: in words and digits of everyday use.
#pragma once

#include <string>

namespace fovea::explain {

// "loo_rmse": "error with each observation left out (RMSE)"; of attention, "hit_rate": "largest
// weight on the right item".
std::string figure_name(const std::string& metric);

// "98.5 %" of shares; otherwise four digits: "0.3219", "618,700", "8.84 · 10⁻⁵".
std::string figure_text(const std::string& metric, double value);

}  // namespace fovea::explain
