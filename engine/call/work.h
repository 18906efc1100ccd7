// How much a call has to compute, to the nearest order of magnitude: what the number of its threads
// depends on.
#pragma once

#include "engine/call/problem.h"

namespace fovea::engine {

// Multiply-adds, or what takes as long; at most what there are where a structure leaves most out.
double forward_work(const Problem& problem, const Geometry& geometry);
double backward_work(const Problem& problem, const Geometry& geometry);

}  // namespace fovea::engine
