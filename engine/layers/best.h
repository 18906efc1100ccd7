// The largest entries of a row with its log-sum-exp: what a search over next tokens needs of a row
// of logits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::engine {

// values[0 .. k) and places[0 .. k) of x[0 .. n), largest first, equal ones by place; k <= n. NaN
// and -infinity come last or not at all: such a place is -1. Returns log(sum(exp(x))).
double best_of_row(const float* x, size_t n, size_t k, float* values, int64_t* places);

}  // namespace fovea::engine
