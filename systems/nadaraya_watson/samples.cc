#include "systems/nadaraya_watson/samples.h"

#include <cmath>

#include "data/random.h"
#include "systems/nadaraya_watson/motorcycle.h"

namespace fovea::systems::nadaraya_watson {

data::Regression motorcycle() {
  data::Regression out;
  out.inputs = {"times"};
  out.target = "accel";
  for (const auto& [time, acceleration] : kMotorcycle) {
    out.x.push_back(time);
    out.y.push_back(acceleration);
  }
  return out;
}

data::Regression sine(int64_t rows, uint64_t seed) {
  data::Regression out;
  out.inputs = {"x"};
  out.target = "y";
  data::Random random(seed);
  for (int64_t i = 0; i < rows; ++i) {
    out.x.push_back(random.uniform(0, 6.283185307179586));
    out.y.push_back(std::sin(out.x.back()) + 0.3 * random.normal());
  }
  return out;
}

}  // namespace fovea::systems::nadaraya_watson
