#include "engine/reference/dropout.h"

namespace fovea::reference {
double dropout_factor(const engine::Problem& problem, const Place& place) {
  const uint64_t x = (problem.seed * 31 + place.batch * 7919 + place.head * 104729 +
                      place.query * 1299709 + place.key) *
                     0x9E3779B97F4A7C15u;
  return (x >> 11) * 0x1p-53 < problem.dropout_p ? 0 : 1 / (1 - problem.dropout_p);
}
double sample_uniform(const engine::Problem& problem, const Place& place) {
  const uint64_t x =
      (problem.seed * 31 + place.batch * 7919 + place.head * 104729 + place.query * 1299709) *
      0x9E3779B97F4A7C15u;
  return (x >> 11) * 0x1p-53;
}
}  // namespace fovea::reference
