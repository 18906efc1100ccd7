#include "engine/layers/sublayer.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "engine/tiles/random.h"
#include "tests/engine/bounds.h"
#include "tests/engine/targets.h"

namespace fovea::engine::testing {
namespace {

using Floats = std::vector<float>;

Floats normal(size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution;
  Floats out(n);
  for (float& x : out) x = distribution(generator);
  return out;
}

class Sublayer : public TargetTest {};

// Widths around whole vectors of every target; the formula in double.
TEST_P(Sublayer, AddsDropsAndNormalises) {
  for (const size_t width : {1u, 3u, 8u, 16u, 17u, 31u, 256u}) {
    for (const double p : {0.0, 0.3}) {
      constexpr size_t kRows = 5;
      const Floats x = normal(kRows * width, 1), y = normal(kRows * width, 2),
                   shift = normal(width, 3), weight = normal(width, 4), bias = normal(width, 5);
      Floats sum = y, out(kRows * width), stats(2 * kRows);
      const Dropout dropout = make_dropout(p, 7);
      const AddNorm<float> what{.width = width,
                                .shift = shift.data(),
                                .weight = weight.data(),
                                .bias = bias.data(),
                                .epsilon = 1e-5f,
                                .dropout = dropout};
      sublayer_kernels<float>().add_norm(what, 1, kRows, x.data(), sum.data(), out.data(),
                                         stats.data());
      EXPECT_EQ(sum[0], y[0]) << "a row outside the range";
      for (size_t r = 1; r < kRows; ++r) {
        std::vector<double> s(width);
        double mean = 0, variance = 0;
        for (size_t c = 0; c < width; ++c) {
          const bool dropped =
              random_pair(random_row(7, 0, 0, r), static_cast<uint32_t>(c)) < dropout.threshold;
          s[c] = x[r * width + c] +
                 (dropped ? 0.0 : (static_cast<double>(y[r * width + c]) + shift[c]) / (1 - p));
          mean += s[c] / static_cast<double>(width);
        }
        double largest = 0;
        for (const double v : s) {
          variance += (v - mean) * (v - mean) / static_cast<double>(width);
          largest = std::max(largest, std::fabs(v));
        }
        for (size_t c = 0; c < width; ++c) {
          expect_close(sum[r * width + c], s[c], bounds::rounded(1 + std::fabs(s[c])));
          // What the sums round is divided by the row's deviation, which may be small.
          const double over = 1 / std::sqrt(variance + 1e-5);
          expect_close(out[r * width + c], (s[c] - mean) * over * weight[c] + bias[c],
                       bounds::rounded(largest * over * std::fabs(weight[c]) + std::fabs(bias[c])));
        }
      }
    }
  }
}

TEST_P(Sublayer, RectifiesAndKeepsNan) {
  constexpr size_t kWidth = 19, kRows = 3;
  const Floats shift = normal(kWidth, 8);
  const Floats before = normal(kRows * kWidth, 9);
  Floats y = before, gradient(kRows * kWidth, 1), columns(kWidth, 0);
  y[4] = NAN;
  const Dropout dropout = make_dropout(0.25, 3);
  sublayer_kernels<float>().rectify(shift.data(), dropout, kWidth, 0, kRows, y.data());
  sublayer_kernels<float>().rectify_backward(dropout.scale, kWidth, 0, kRows, y.data(),
                                             gradient.data(), columns.data());
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t r = i / kWidth, c = i % kWidth;
    const bool dropped =
        random_pair(random_row(3, 0, 0, r), static_cast<uint32_t>(c)) < dropout.threshold;
    if (i == 4) {
      EXPECT_TRUE(dropped ? y[i] == 0 : std::isnan(y[i]));
      continue;
    }
    const float value = before[i] + shift[c];
    EXPECT_FLOAT_EQ(y[i], dropped || value <= 0 ? 0 : value / 0.75f);
    EXPECT_FLOAT_EQ(gradient[i], dropped || value <= 0 ? 0 : 1 / 0.75f);
  }
}

FOVEA_FOR_EVERY_TARGET(Sublayer);

}  // namespace
}  // namespace fovea::engine::testing
