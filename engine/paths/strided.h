// The strided structure, without masked dense tiles. The keys of a query are its band of neighbours,
// and those of the same residue modulo the stride; the queries and keys of a residue are a small
// causal problem. One softmax state is updated by both.
#pragma once

#include "engine/call/problem.h"

namespace fovea::engine {

template <class T>
void strided_backward(const Problem& problem, const Geometry& geometry, const Result& saved,
                      const Gradients& gradients, const Parallel& parallel);

}  // namespace fovea::engine
