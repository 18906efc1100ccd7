// The loops over rows that several paths share, against plain loops, on every SIMD target.
#include "engine/loops/rows.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/engine/bounds.h"
#include "tests/engine/targets.h"

namespace fovea::engine::testing {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kRows = 5, kStride = 80;
constexpr size_t kWidths[] = {1, 3, 16, 33, 65};

class RowLoopsTest : public TargetTest {
 protected:
  // kRows rows, kStride apart, of numbers in [-1, 1].
  std::vector<float> draw() {
    std::vector<float> rows(kRows * kStride);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& x : rows) x = uniform(generator_);
    return rows;
  }
  static double dot(const float* a, const float* b, size_t width) {
    double sum = 0;
    for (size_t c = 0; c < width; ++c) sum += double{a[c]} * b[c];
    return sum;
  }

  std::mt19937 generator_{7};
};

TEST_P(RowLoopsTest, DotsOfRowsAndOfGatheredRows) {
  const std::vector<float> a = draw(), b = draw();
  const int32_t index[] = {4, 0, 4, 2};
  for (const size_t width : kWidths) {
    std::vector<float> out(kRows), gathered(4);
    row_loops<float>().dots(a.data(), kStride, b.data(), kStride, kRows, width, out.data());
    row_loops<float>().gather_dots(a.data(), index, 4, b.data(), kStride, width, gathered.data());
    const double bound = bounds::rounded(static_cast<double>(width));
    for (size_t r = 0; r < kRows; ++r)
      expect_close(out[r], dot(&a[r * kStride], &b[r * kStride], width), bound);
    for (size_t i = 0; i < 4; ++i)
      expect_close(gathered[i], dot(a.data(), &b[static_cast<size_t>(index[i]) * kStride], width),
                   bound);
  }
}

TEST_P(RowLoopsTest, AFactorOfZeroClearsARowOfNaN) {
  const float factor[kRows] = {2, 0, -1, 0.5f, 0};
  for (const size_t width : kWidths) {
    std::vector<float> x = draw();
    const std::vector<float> before = x;
    x[kStride] = kNaN;
    row_loops<float>().scale(x.data(), kStride, kRows, width, factor);
    for (size_t r = 0; r < kRows; ++r)
      for (size_t c = 0; c < width; ++c)
        EXPECT_EQ(x[r * kStride + c], factor[r] == 0 ? 0 : factor[r] * before[r * kStride + c]);
  }
}

TEST_P(RowLoopsTest, GatherReadsNoRowOfWeightZero) {
  std::vector<float> rows = draw();
  for (size_t c = 0; c < kStride; ++c) rows[3 * kStride + c] = kNaN;
  const float weights[] = {0.5f, 0, -2};
  const int32_t index[] = {4, 3, 1};
  for (const size_t width : kWidths) {
    std::vector<float> out(kStride, 1);
    row_loops<float>().gather(weights, index, 3, rows.data(), kStride, width, Into::kAdd,
                              out.data());
    for (size_t c = 0; c < width; ++c)
      expect_close(out[c], 1 + 0.5 * rows[4 * kStride + c] - 2.0 * rows[kStride + c],
                   bounds::rounded(4));
    row_loops<float>().gather(weights, index, 3, rows.data(), kStride, width, Into::kStore,
                              out.data());
    for (size_t c = 0; c < width; ++c)
      expect_close(out[c], 0.5 * rows[4 * kStride + c] - 2.0 * rows[kStride + c],
                   bounds::rounded(4));
  }
}

TEST_P(RowLoopsTest, FindsTheFirstNumberAboveAThreshold) {
  for (const size_t n : kWidths) {
    std::vector<float> x(n + kRowPadding, -1);
    EXPECT_EQ(row_loops<float>().find_above(x.data(), 0, n, 0), n);
    x[n] = 1;  // past the end: does not count
    EXPECT_EQ(row_loops<float>().find_above(x.data(), 0, n, 0), n);
    x[n - 1] = 1;
    EXPECT_EQ(row_loops<float>().find_above(x.data(), 0, n, 0), n - 1);
    EXPECT_EQ(row_loops<float>().find_above(x.data(), 0, n, 1), n);  // above, not equal
  }
}

TEST_P(RowLoopsTest, FiniteSeesEveryPlaceWithinTheWidth) {
  for (const size_t width : kWidths) {
    std::vector<float> x = draw();
    EXPECT_TRUE(row_loops<float>().finite(x.data(), kStride, kRows, width));
    x[width] = kNaN;  // beside the row
    EXPECT_TRUE(row_loops<float>().finite(x.data(), kStride, kRows, width));
    for (const float bad : {kNaN, std::numeric_limits<float>::infinity(), std::ldexp(1.0f, 62)}) {
      std::vector<float> y = draw();
      y[(kRows - 1) * kStride + width - 1] = bad;
      EXPECT_FALSE(row_loops<float>().finite(y.data(), kStride, kRows, width)) << bad;
    }
  }
}

FOVEA_FOR_EVERY_TARGET(RowLoopsTest);

}  // namespace
}  // namespace fovea::engine::testing
