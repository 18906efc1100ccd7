// Results are written while inputs are still read, on many threads. So the array of a result must not
// overlap any other array.
#pragma once

#include "fovea/engine.h"

namespace fovea::engine {

// Throw InvalidArgument that names a result which shares memory with an input or with another
// result, or whose own elements overlap.
void check_places(const Problem& problem, const Result& result);
void check_places(const Problem& problem, const Result& saved, const Gradients& gradients);
void check_places(const Problem& problem, const Selection& selection, const SelectedWeights& out);

// Whether two arrays may have a byte in common. Exact for slices of one array along any of its
// dimensions; false only if they have none.
bool may_share(const View& a, const View& b);

}  // namespace fovea::engine
