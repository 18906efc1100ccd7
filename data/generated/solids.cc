#include "data/generated/solids.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "data/random.h"

namespace fovea::data {
namespace {

using Point = std::array<double, 3>;
constexpr double kTurn = 6.283185307179586;

Point on_sphere(Random& random) {
  const double z = random.uniform(-1, 1), angle = random.uniform(0, kTurn),
               r = std::sqrt(1 - z * z);
  return {r * std::cos(angle), r * std::sin(angle), z};
}

Point on_cube(Random& random) {
  const uint64_t face = random.below(6);
  Point p{random.uniform(-1, 1), random.uniform(-1, 1), random.uniform(-1, 1)};
  p[face / 2] = face % 2 ? 1 : -1;
  return p;
}

// Side and base (and top) in proportion to their areas.
Point on_cone(Random& random) {
  const double angle = random.uniform(0, kTurn), slope = std::sqrt(5.0);  // radius 1, height 2
  const double r = std::sqrt(random.uniform());
  const bool side = random.uniform() < slope / (slope + 1);
  return {r * std::cos(angle), r * std::sin(angle), side ? 1 - 2 * r : -1};
}

Point on_cylinder(Random& random) {
  const double angle = random.uniform(0, kTurn), kind = random.uniform();
  if (kind < 2.0 / 3) return {std::cos(angle), std::sin(angle), random.uniform(-1, 1)};
  const double r = std::sqrt(random.uniform());
  return {r * std::cos(angle), r * std::sin(angle), kind < 5.0 / 6 ? 1.0 : -1.0};
}

Point on_torus(Random& random) {
  constexpr double kBig = 1, kSmall = 0.35;
  for (;;) {  // even over the surface: the outside has more of it
    const double u = random.uniform(0, kTurn), v = random.uniform(0, kTurn);
    if (random.uniform() * (kBig + kSmall) > kBig + kSmall * std::cos(v)) continue;
    return {(kBig + kSmall * std::cos(v)) * std::cos(u),
            (kBig + kSmall * std::cos(v)) * std::sin(u), kSmall * std::sin(v)};
  }
}

Point on_pyramid(Random& random) {
  if (random.uniform() < 4 / (4 + 4 * std::sqrt(5.0)))
    return {random.uniform(-1, 1), random.uniform(-1, 1), -1};
  const double down = std::sqrt(random.uniform()),
               along = random.uniform(-1, 1) * down;  // from the tip
  const double z = 1 - 2 * down;
  switch (random.below(4)) {
    case 0:
      return {down, along, z};
    case 1:
      return {-down, along, z};
    case 2:
      return {along, down, z};
    default:
      return {along, -down, z};
  }
}

Point on_ellipsoid(Random& random) {
  const Point p = on_sphere(random);
  return {p[0], 0.5 * p[1], 0.7 * p[2]};
}

Point on_helix(Random& random) {
  const double t = random.uniform();
  return {std::cos(3 * kTurn * t), std::sin(3 * kTurn * t), 2 * t - 1};
}

struct Solid {
  const char* name;
  Point (*draw)(Random&);
};
constexpr std::array<Solid, kSolids> kSolidTable = {{{"sphere", on_sphere},
                                                     {"cube", on_cube},
                                                     {"cone", on_cone},
                                                     {"cylinder", on_cylinder},
                                                     {"torus", on_torus},
                                                     {"pyramid", on_pyramid},
                                                     {"ellipsoid", on_ellipsoid},
                                                     {"helix", on_helix}}};

}  // namespace

const char* solid_name(int64_t which) { return kSolidTable[static_cast<size_t>(which)].name; }

void standardise_cloud(std::vector<float>& cloud) {
  const size_t points = cloud.size() / 3;
  if (points == 0) return;
  double squares = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    double mean = 0;
    for (size_t i = 0; i < points; ++i) mean += cloud[3 * i + axis];
    mean /= static_cast<double>(points);
    for (size_t i = 0; i < points; ++i) {
      cloud[3 * i + axis] -= static_cast<float>(mean);
      squares += double{cloud[3 * i + axis]} * cloud[3 * i + axis];
    }
  }
  const double deviation = std::sqrt(squares / static_cast<double>(cloud.size()));
  if (deviation > 1e-6)
    for (float& x : cloud) x = static_cast<float>(x / deviation);
}

std::vector<float> solid_cloud(int64_t which, int64_t points, uint64_t seed) {
  Random random(mix(seed, 0x501D + static_cast<uint64_t>(which)));
  const double angle = random.uniform(0, kTurn);
  std::vector<float> out;
  for (int64_t i = 0; i < points; ++i) {
    const Point p = kSolidTable[static_cast<size_t>(which)].draw(random);
    const double x = p[0] * std::cos(angle) - p[1] * std::sin(angle),
                 y = p[0] * std::sin(angle) + p[1] * std::cos(angle);
    for (const double value : {x, y, p[2]})
      out.push_back(static_cast<float>(value + 0.02 * random.normal()));
  }
  standardise_cloud(out);
  return out;
}

}  // namespace fovea::data
