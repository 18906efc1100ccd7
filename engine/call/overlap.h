// Results are written while inputs are still read, on many threads: each place for a result must be
// memory of its own.
#pragma once

#include "fovea/engine.h"

namespace fovea::engine {

// Throw InvalidArgument naming a place that shares memory with an input or with another place, or
// one whose elements share memory with one another.
void check_places(const Problem& problem, const Result& result);
void check_places(const Problem& problem, const Result& saved, const Gradients& gradients);
void check_places(const Problem& problem, const Selection& selection, const SelectedWeights& out);

// Whether two arrays may have a byte in common. Exact for slices of one array along any of its
// dimensions; never no where they have.
bool may_share(const View& a, const View& b);

}  // namespace fovea::engine
