#include "engine/reference/dropout.h"

#include <cmath>

namespace fovea::reference {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

// The finaliser of SplitMix64.
uint64_t mix(uint64_t z) {
  z ^= z >> 30;
  z *= 0xbf58476d1ce4e5b9;
  z ^= z >> 27;
  z *= 0x94d049bb133111eb;
  z ^= z >> 31;
  return z;
}

uint32_t hash(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352d;
  x ^= x >> 15;
  x *= 0x846ca68b;
  x ^= x >> 16;
  return x;
}

// Folds the row's position into the seed, one coordinate after another.
uint64_t row_of(uint64_t seed, const Place& place) {
  uint64_t state = mix(seed + kGolden);
  state = mix(state ^ static_cast<uint64_t>(place.batch));
  state = mix((state + kGolden) ^ static_cast<uint64_t>(place.head));
  return mix((state + kGolden) ^ static_cast<uint64_t>(place.query));
}

}  // namespace

double dropout_factor(const engine::Problem& problem, const Place& place) {
  const uint64_t row = row_of(problem.seed, place);
  const uint32_t low = static_cast<uint32_t>(row), high = static_cast<uint32_t>(row >> 32);
  const uint32_t drawn = hash(hash(static_cast<uint32_t>(place.key) + low) ^ high) >> 8;
  const bool dropped = drawn < std::round(problem.dropout_p * 0x1p24);
  return dropped ? 0 : 1 / (1 - problem.dropout_p);
}

double sample_uniform(const engine::Problem& problem, const Place& place) {
  return static_cast<double>(mix(row_of(problem.seed, place)) >> 11) * 0x1p-53;
}

}  // namespace fovea::reference
