// The formulae of bench/rows/work.h against a count of what the definitions do.
#include "bench/rows/work.h"

#include <gtest/gtest.h>

#include <functional>

namespace fovea::bench {
namespace {

double count_pairs(int64_t n, const std::function<bool(int64_t, int64_t)>& sees) {
  double pairs = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) pairs += sees(i, j);
  }
  return pairs;
}

TEST(Work, PairsAreThoseOfTheDefinitions) {
  for (int64_t n : {1, 2, 7, 64, 97}) {
    EXPECT_EQ(pairs_dense(n, n), count_pairs(n, [](int64_t, int64_t) { return true; }));
    EXPECT_EQ(pairs_causal(n), count_pairs(n, [](int64_t i, int64_t j) { return j <= i; }));
    EXPECT_EQ(pairs_window(n, 3, 5),
              count_pairs(n, [](int64_t i, int64_t j) { return i - 3 <= j && j <= i + 5; }));
    EXPECT_EQ(pairs_window(n, -1, 0), pairs_causal(n));
    EXPECT_EQ(pairs_window(n, -1, -1), pairs_dense(n, n));
    for (int64_t stride : {1, 4, 16}) {
      EXPECT_EQ(pairs_strided(n, stride),
                count_pairs(n,
                            [=](int64_t i, int64_t j) {
                              return j <= i && (i - j <= stride || (i - j) % stride == 0);
                            }))
          << n << " " << stride;
    }
  }
  EXPECT_EQ(pairs_documents({2, 3}),
            count_pairs(5, [](int64_t i, int64_t j) { return (i < 2) == (j < 2); }));
}

// A naive forward and backward that counts its multiply-adds: scores S = q k', output P v; then S
// again, dP = g v', dV = P' g, dQ = dS k, dK = dS' q.
double count_flops(Pass pass, int64_t queries, int64_t keys, int64_t width, int64_t value_width) {
  double multiply_adds = 0;
  const auto product = [&](int64_t rows, int64_t columns, int64_t depth) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        for (int64_t d = 0; d < depth; ++d) ++multiply_adds;
      }
    }
  };
  product(queries, keys, width);
  product(queries, value_width, keys);
  if (pass == Pass::kForwardBackward) {
    product(queries, keys, width);
    product(queries, keys, value_width);
    product(keys, value_width, queries);
    product(queries, width, keys);
    product(keys, width, queries);
  }
  return 2 * multiply_adds;
}

TEST(Work, FlopsAreThoseOfTheProducts) {
  for (Pass pass : {Pass::kForward, Pass::kForwardBackward}) {
    EXPECT_EQ(dot_flops(pass, 5 * 7, 3, 11), count_flops(pass, 5, 7, 3, 11));
  }
  // Equal widths: the two and the seven products of FlashAttention's count.
  EXPECT_EQ(dot_flops(Pass::kForward, 100, 64, 64), 4.0 * 100 * 64);
  EXPECT_EQ(dot_flops(Pass::kForwardBackward, 100, 64, 64), 14.0 * 100 * 64);
}

TEST(Work, CoversBatchesHeadsAndGroups) {
  const Shape shape{.batch = 2,
                    .heads = 8,
                    .key_heads = 2,
                    .queries = 1,
                    .keys = 100,
                    .width = 4,
                    .value_width = 6};
  const Work work = dot_work(Pass::kForward, shape, pairs_dense(1, 100));
  EXPECT_EQ(work.pairs, 2 * 8 * 100);
  EXPECT_EQ(work.flops, 2.0 * work.pairs * (4 + 6));
  // Keys and values of the two groups, not of the eight heads.
  EXPECT_EQ(work.bytes, 4.0 * (2 * 8 * 4 + 2 * 2 * 100 * (4 + 6) + 2 * 8 * 6));
}

}  // namespace
}  // namespace fovea::bench
