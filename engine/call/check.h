// Checks at the boundary: each throws InvalidArgument naming the argument, what was got and what
// was expected.
#pragma once

#include <string>

#include "engine/call/problem.h"
#include "engine/call/view.h"
#include "fovea/engine.h"

namespace fovea::engine {

// A macro, so that a message is only made when it is needed: some stand in loops over every edge of
// a graph.
#define FOVEA_CHECK(right, ...) \
  if (!(right)) throw InvalidArgument(__VA_ARGS__)

void check_rank(const View& view, const ArgumentName& name, int rank);
void check_dtype(const View& view, const ArgumentName& name, DType dtype);
void check_size(const View& view, const ArgumentName& name, int dimension, int64_t size,
                const char* whose);
// Non-negative sizes and a contiguous last dimension.
void check_rows(const View& view, const ArgumentName& name);

void check_score(const Problem& problem, const Geometry& geometry);
void check_normaliser(const Problem& problem, const Geometry& geometry);
void check_structure(const Problem& problem, const Geometry& geometry);

}  // namespace fovea::engine
