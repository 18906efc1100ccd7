// How long the tables of a page may become.
#pragma once

#include <cstddef>

namespace fovea::explain {

// Rows of all tables of an explanation that has one for each query; for a long input some are left
// out.
inline constexpr size_t kMostTableRows = 20'000;

}  // namespace fovea::explain
