#include "engine/layers/best.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/engine/bounds.h"
#include "tests/engine/targets.h"

namespace fovea::engine::testing {
namespace {

using Floats = std::vector<float>;

class Best : public TargetTest {};

TEST_P(Best, FindsTheBestOfARowAndItsLogSumExp) {
  for (const size_t n : {1u, 7u, 16u, 33u, 1000u}) {
    Floats x(n);
    std::mt19937 generator(20);
    std::normal_distribution<float> normal;
    for (float& value : x) value = normal(generator);
    if (n > 20) x[3] = x[19] = x[11] = 9;  // equal ones come by place
    const size_t k = std::min<size_t>(n, 6);
    Floats values(k);
    std::vector<int64_t> places(k);
    const double lse = best_of_row(x.data(), n, k, values.data(), places.data());
    double sum = 0;
    for (const float v : x) sum += std::exp(static_cast<double>(v));
    expect_close(lse, std::log(sum), bounds::rounded(std::max(1.0, std::log(sum))));
    std::vector<int64_t> expected(n);
    for (size_t i = 0; i < n; ++i) expected[i] = static_cast<int64_t>(i);
    std::stable_sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
      return x[static_cast<size_t>(a)] > x[static_cast<size_t>(b)];
    });
    for (size_t i = 0; i < k; ++i) {
      EXPECT_EQ(places[i], expected[i]);
      EXPECT_EQ(values[i], x[static_cast<size_t>(expected[i])]);
    }
  }
}

TEST_P(Best, LeavesOutWhatIsNoNumber) {
  Floats x(40, -INFINITY), values(3);
  std::vector<int64_t> places(3);
  x[5] = NAN;
  x[38] = 1;
  best_of_row(x.data(), x.size(), 3, values.data(), places.data());
  EXPECT_EQ(places, (std::vector<int64_t>{38, -1, -1}));
}

FOVEA_FOR_EVERY_TARGET(Best);

}  // namespace
}  // namespace fovea::engine::testing
