// Few queries against many keys: keys are split into chunks of a fixed size, read once where they
// lie, and the chunks' softmax states are merged in order.
#pragma once

#include <string>

#include "engine/runtime/parallel.h"
#include "engine/call/problem.h"

namespace fovea::engine {

// Empty when the path serves the problem, otherwise why not.
std::string against_decode(const Problem& problem, const Geometry& geometry);
template <class T>
int64_t decode_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                       const Parallel& parallel);

}  // namespace fovea::engine
