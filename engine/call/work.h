// How much a call has to compute, to an order of magnitude. The number of its threads depends on it.
#pragma once

#include "engine/call/problem.h"

namespace fovea::engine {

// In multiply-adds, or operations that take as long. Too high for a structure that masks most pairs.
double forward_work(const Problem& problem, const Geometry& geometry);
double backward_work(const Problem& problem, const Geometry& geometry);

}  // namespace fovea::engine
