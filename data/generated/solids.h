// Point clouds of eight solids, sampled on their surfaces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::data {

inline constexpr int64_t kSolids = 8;
const char* solid_name(
    int64_t which);  // sphere, cube, cone, cylinder, torus, pyramid, ellipsoid, helix

// `points` points x, y, z of a solid, turned about z by a random angle, with noise 0.02, then
// standardised.
std::vector<float> solid_cloud(int64_t which, int64_t points, uint64_t seed);

// Centred per axis and scaled to unit variance over all coordinates; a cloud of one place is
// centred only.
void standardise_cloud(std::vector<float>& cloud);

}  // namespace fovea::data
