#include "systems/pooling/questions.h"

#include <algorithm>
#include <vector>

#include "data/random.h"

namespace fovea::systems::pooling {

std::string answer_in_words(const std::string& question, int64_t label) {
  if (question == "many") return label ? "more than seven points" : "fewer than seven points";
  if (question == "right")
    return label ? "the points lie to the right" : "the points lie to the left";
  return label ? "one point lies far to the right" : "no point lies far out";
}

data::Bags generate(const std::string& question, int64_t count, uint64_t seed) {
  data::Random random(seed);
  data::Bags bags;
  bags.width = 2;
  for (int64_t bag = 0; bag < count; ++bag) {
    const bool yes = bag % 2;  // balanced by construction
    const int64_t size = question == "many"
                             ? static_cast<int64_t>(yes ? 8 + random.below(7) : random.below(7))
                             : static_cast<int64_t>(1 + random.below(14));
    std::vector<float> points;
    for (int64_t i = 0; i < 2 * size; ++i) points.push_back(static_cast<float>(random.normal()));
    if (question == "right") {
      float mean = 0;
      for (size_t i = 0; i < points.size(); i += 2) mean += points[i] / static_cast<float>(size);
      for (size_t i = 0; i < points.size(); i += 2) points[i] += (yes ? 0.15f : -0.15f) - mean;
    }
    if (question == "far") {
      for (float& value : points) value = std::min(value, kNear);
      if (yes)
        points[2 * random.below(static_cast<uint64_t>(size))] =
            static_cast<float>(3 + random.uniform());
    }
    bags.names.push_back(std::to_string(bag));
    bags.labels.push_back(yes);
    bags.features.push_back(std::move(points));
  }
  return bags;
}

}  // namespace fovea::systems::pooling
