// Strided structures without masking dense tiles: first the band of neighbours, then, for each
// residue, the queries and keys of that residue as a small causal problem of their own; one softmax
// state runs through both.
#pragma once

#include "engine/call/problem.h"

namespace fovea::engine {

template <class T>
void strided_backward(const Problem& problem, const Geometry& geometry, const Result& saved,
                      const Gradients& gradients, const Parallel& parallel);

}  // namespace fovea::engine
