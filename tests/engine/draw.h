// A random combination of everything the table of cases has.
#pragma once

#include <cstdint>
#include <functional>

#include "cases/cases.h"

namespace fovea {

// A whole number between the two, both included.
using Draw = std::function<int64_t(int64_t low, int64_t high)>;

cases::Case draw_case(const Draw& draw, uint64_t seed);
// At most one packing, and one set of relative tables: what the table itself can build.
bool well_formed(const cases::Case&);
// Whether the combination is one of those that have no meaning.
bool is_refused(const engine::Problem&);

}  // namespace fovea
