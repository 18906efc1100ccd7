// The drivers' results beside the reference's.
#pragma once

#include <vector>

#include "cases/cases.h"
#include "engine/reference/reference.h"

namespace fovea {

// Threads that come and go: `workers` of them for each call.
engine::Parallel threads(size_t workers);

double tolerance(engine::DType dtype);
// Scores of 1e4 are known to 1e-3 in float32, whoever computes them.
double tolerance(const cases::Case& c);

// Largest difference over the largest magnitude, NaN when either holds one.
double difference(const reference::Tensor<double>& got, const std::vector<double>& want);

// Forward and backward of a case.
void expect_right(const cases::Case& c, size_t workers = 2);

}  // namespace fovea
