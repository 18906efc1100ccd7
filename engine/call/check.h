// Checks of a call's arguments: each throws InvalidArgument that names the argument, what was got
// and what was expected.
#pragma once

#include <string>

#include "engine/call/problem.h"
#include "engine/call/view.h"
#include "fovea/engine.h"

namespace fovea::engine {

// A macro, so that the message is only built when the check fails: some checks are in loops over
// every edge of a graph.
#define FOVEA_CHECK(right, ...) \
  if (!(right)) throw InvalidArgument(__VA_ARGS__)

// The messages are built out of line: a call of a few hundred nanoseconds has some twenty of these
// checks.
[[noreturn]] void refuse_rank(const View& view, const ArgumentName& name, int rank);
[[noreturn]] void refuse_dtype(const View& view, const ArgumentName& name, DType dtype);
[[noreturn]] void refuse_size(const View& view, const ArgumentName& name, int dimension,
                              int64_t size, const char* whose);
inline void check_rank(const View& view, const ArgumentName& name, int rank) {
  if (view.rank != rank) refuse_rank(view, name, rank);
}
inline void check_dtype(const View& view, const ArgumentName& name, DType dtype) {
  if (view.dtype != dtype) refuse_dtype(view, name, dtype);
}
inline void check_size(const View& view, const ArgumentName& name, int dimension, int64_t size,
                       const char* whose) {
  if (view.size[dimension] != size) refuse_size(view, name, dimension, size, whose);
}
// Non-negative sizes and a contiguous last dimension.
void check_rows(const View& view, const ArgumentName& name);

void check_score(const Problem& problem, const Geometry& geometry);
void check_normaliser(const Problem& problem, const Geometry& geometry);
// That unions have parts and complements one.
void check_parts(const Structure& structure);
void check_structure(const Problem& problem, const Geometry& geometry);

}  // namespace fovea::engine
