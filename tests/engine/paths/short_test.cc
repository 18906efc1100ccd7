// Few queries over few keys, rows read where they lie: against the reference at every length around
// its limits, and what it leaves to others.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cases/cases.h"
#include "engine/simd/hold.h"
#include "hwy/targets.h"
#include "tests/engine/comparison.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Case;
using engine::DType;
using engine::Task;

cases::Shape square(int64_t length) {
  return {.batch = 1,
          .heads = 2,
          .key_heads = 2,
          .queries = length,
          .keys = length,
          .width = 9,
          .value_width = 70};
}

std::string forward_path(const Case& c) { return path_of(cases::build(c).problem, Task::kForward); }

// 2,400 pairs are the most, and 64 queries.
TEST(ShortPath, AgreesWithTheReferenceAtEveryLengthToItsEndAndPast) {
  for (int64_t length = 1; length <= 70; ++length) {
    const Case dense{.shape = square(length)},
        causal{.structure = {"causal"}, .shape = square(length)};
    expect_forward_agreement(dense);
    expect_forward_agreement(causal);
    EXPECT_EQ(forward_path(dense), length <= 48 ? "short" : "tiles") << length;
    EXPECT_EQ(forward_path(causal), length <= 64 ? "short" : "tiles") << length;
    expect_agreement(dense);
    expect_agreement(causal);
  }
}

TEST(ShortPath, AgreesForEveryRangeTypeAndLayout) {
  for (const char* structure : {"dense", "causal", "causal_bottom_right", "window", "window_left",
                                "prefix", "prefix_per_item", "ragged"}) {
    const bool packed = structure == std::string("ragged");
    for (const DType dtype :
         {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16}) {
      for (const auto& [queries, keys] :
           {std::pair<int64_t, int64_t>{1, 1}, {3, 2}, {5, 17}, {31, 8}, {9, 256}}) {
        const bool offset = structure != std::string("causal_bottom_right");
        const Case c{.structure = {structure},
                     .shape = {.batch = 3,
                               .heads = 4,
                               .key_heads = 2,
                               .queries = queries,
                               .keys = packed ? queries : keys,
                               .width = 33,
                               .value_width = 18},
                     .dtype = dtype,
                     .key_lengths = !packed,
                     .query_offset = offset,
                     .content = cases::Content::kPoison,
                     .layout = packed ? cases::Layout::kContiguous : cases::Layout::kStrided};
        expect_forward_agreement(c);
        expect_agreement(c);
        EXPECT_EQ(forward_path(c), "short") << c.name();
      }
    }
  }
}

TEST(ShortPath, AgreesOnEveryTarget) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    engine::hold_simd_target(hwy::TargetName(target));
    SCOPED_TRACE(hwy::TargetName(target));
    for (const DType dtype :
         {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16}) {
      for (int64_t length = 1; length <= 20; ++length) {
        cases::Shape shape = square(length);
        // Rows of less than a vector, and of four, two and one vector and a rest, of any target.
        shape.width = shape.value_width = 1 + 29 * length % 140;
        const Case plain{.structure = {"causal"}, .shape = shape, .dtype = dtype};
        expect_forward_agreement(plain);
        expect_agreement(plain);
        Case large = plain;
        large.content = cases::Content::kLarge;
        expect_forward_agreement(large);
        expect_agreement(large);
      }
    }
  }
  engine::hold_simd_target(nullptr);
}

TEST(ShortPath, GivesTheSameBitsForAnyNumberOfWorkers) {
  for (const cases::Shape& shape : {cases::Shape{.batch = 700,
                                   .heads = 2,
                                   .key_heads = 1,
                                   .queries = 5,
                                   .keys = 7,
                                   .width = 64,
                                   .value_width = 64},
                                    cases::Shape{.batch = 3,
                                    .heads = 32,
                                    .key_heads = 32,
                                    .queries = 40,
                                    .keys = 40,
                                    .width = 64,
                                    .value_width = 64}}) {
    std::vector<Numbers> all;
    for (const size_t workers : {1, 2, 5}) {
      cases::Built built = cases::build({.shape = shape});
      built.result.statistics = {};
      engine::forward(built.problem, built.result, threads(workers));
      all.push_back(numbers(built.result.output));
    }
    EXPECT_TRUE(all[0] == all[1]);
    EXPECT_TRUE(all[0] == all[2]);
  }
}

// One key or several: a score that is no number spoils its row, -infinity masks its key.
TEST(ShortPath, KeepsScoresThatAreNotFiniteToTheirRows) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const int64_t keys : {1, 3, 20}) {
    for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
      cases::Built built = cases::build({.shape = {.batch = 1,
                                                   .heads = 1,
                                                   .key_heads = 1,
                                                   .queries = 2,
                                                   .keys = keys,
                                                   .width = 2,
                                                   .value_width = 2}});
      built.result.statistics = {};
      ASSERT_EQ(path_of(built.problem, Task::kForward, &built.result), "short");
      // Scores of row 0 become `bad`, whatever the keys: those are positive.
      for (int64_t j = 0; j < 2 * keys; ++j) cases::Storage::set(built.problem.key, j, 0.5);
      cases::Storage::set(built.problem.query, 0, bad);
      const Results got = run_forward(built);
      const bool masked = bad == -kInfinity;
      for (int64_t e = 0; e < 2; ++e) {
        if (masked)
          EXPECT_EQ(got.output[e], 0) << keys;
        else
          EXPECT_TRUE(std::isnan(got.output[e])) << keys << " " << bad;
        EXPECT_TRUE(std::isfinite(got.output[2 + e])) << keys << " " << bad;
      }
      EXPECT_EQ(got.empty_rows, masked ? 1 : 0);
      built.problem.check_finite = true;
      if (masked)
        run_forward(built);
      else
        EXPECT_THROW(run_forward(built), InvalidArgument);
    }
  }
}

TEST(ShortPath, LeavesEverythingElseToOthers) {
  const Case c{.shape = square(8)};
  EXPECT_EQ(forward_path(c), "short");
  const auto without = [&](const auto& change) {
    Case changed = c;
    change(changed);
    EXPECT_NE(forward_path(changed), "short") << changed.name();
    EXPECT_NE(path_of(cases::build(changed).problem, Task::kWeights), "short") << changed.name();
  };
  for (const auto& normaliser : cases::normalisers()) {
    if (normaliser.name != "softmax")
      without([&](Case& changed) { changed.normaliser = normaliser.name; });
  }
  for (const auto& modifier : cases::modifiers())
    without([&](Case& changed) { changed.modifiers = {modifier.name}; });
  for (const char* structure : {"keep", "documents", "blocks", "strided", "fixed", "graph"})
    without([&](Case& changed) { changed.structure = {structure}; });
  without([](Case& changed) { changed.dropout_p = 0.1; });
  without([](Case& changed) { changed.score = "cosine"; });
  without([](Case& changed) { changed.shape.width = 513; });
  without([](Case& changed) { changed.shape.keys = 1025; });
}

}  // namespace
}  // namespace fovea
