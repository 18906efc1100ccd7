// Gradients where two products nearly cancel. What is left of them is rounding, a unit of the products
// and not of the small truth, and what it is multiplied by after that may be large. Moving the inputs
// does not show it: both products move together, and the naive run, which makes them alike, loses nothing.
#pragma once

#include <vector>

#include "cases/cases.h"

namespace fovea {

// The largest of what such a unit is divided by, at least 1: sum E of a ratio, the length of a row
// under a cosine.
double largest_quotient(const engine::Problem&);
// How steeply the scores rise with the elements of each array of the problem, the largest of a few
// random moves: what such a unit of a score's gradient is multiplied by on its way into the array's.
// Before any soft cap.
std::vector<double> slopes(cases::Built&);

}  // namespace fovea
