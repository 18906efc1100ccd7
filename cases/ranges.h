// How large the random numbers of a case are.
#pragma once

#include <string>

#include "cases/cases.h"
#include "engine/call/view.h"

namespace fovea::cases {

struct Range {
  double low, high;
};

// A ratio divides by the sum of its scores: positive ones keep it away from zero, where no
// precision is enough.
inline bool is_ratio(const Case& c) { return c.normaliser == "kernel_ratio"; }

// Queries and keys: products and squared distances are of the order of 1, or of 1e4.
inline Range operand_range(const Case& c) {
  const bool product = c.score.starts_with("dot") || c.score.starts_with("bilinear") ||
                       c.score.starts_with("kernel");
  const bool linear = c.score == "rank_one" || c.score == "location";
  double size = 1.5;
  if (c.content == Content::kLarge) size = product ? 100 : linear ? 1e4 : 1.5;
  return {is_ratio(c) && !c.score.starts_with("kernel") ? size / 10 : -size, size};
}

inline Range weight_range(const Case& c) {
  const double size = c.content == Content::kLarge && !c.score.starts_with("bilinear") ? 1e4 : 1;
  return {is_ratio(c) ? size / 10 : -size, size};
}

}  // namespace fovea::cases
