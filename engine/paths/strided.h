// Strided structures without masking dense tiles: first the band of neighbours, then, for each
// residue, the queries and keys of that residue as a small causal problem of their own; one softmax
// state runs through both.
#pragma once

#include <functional>
#include <string>

#include "engine/runtime/parallel.h"
#include "engine/call/problem.h"

namespace fovea::engine {

// Empty when the path serves the problem, otherwise why not.
std::string against_strided(const Problem& problem, const Geometry& geometry);
template <class T>
int64_t strided_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                        const Parallel& parallel);

// Backward of a problem that strided attention is made of.
using SubBackward =
    std::function<void(const Problem& problem, const Result& saved, const Gradients& gradients)>;
// Says whether it served: float32 and float64 without dropout and lengths, as many keys as queries.
template <class T>
bool strided_backward(const Problem& problem, const Geometry& geometry, const Result& saved,
                      const Gradients& gradients, const SubBackward& run);

}  // namespace fovea::engine
