#include "systems/next_word/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "fovea/error.h"

namespace fovea::systems::next_word {

int64_t chosen(std::span<const float> scores, const Sampling& sampling, data::Random& random) {
  const auto best =
      static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  if (!std::isfinite(scores[best]) ||
      std::isnan(std::accumulate(scores.begin(), scores.end(), 0.0)))
    throw InvalidArgument("scores of the next token: not finite, expected finite numbers");
  if (sampling.temperature <= 0 || sampling.top_k == 1) return static_cast<int64_t>(best);
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](int64_t id) { return scores[static_cast<size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return score(a) > score(b); });
  if (sampling.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(sampling.top_k)));
  std::vector<double> mass;
  double total = 0;
  for (const int64_t id : order) {
    mass.push_back(std::exp((static_cast<double>(score(id)) - static_cast<double>(scores[best])) /
                            sampling.temperature));
    total += mass.back();
  }
  double kept = 0;
  size_t count = 0;
  while (count < mass.size() && (count == 0 || kept < sampling.top_p * total))
    kept += mass[count++];
  double draw = random.uniform() * kept;
  for (size_t i = 0; i < count; ++i)
    if ((draw -= mass[i]) < 0) return order[i];
  return order[count - 1];
}

}  // namespace fovea::systems::next_word
