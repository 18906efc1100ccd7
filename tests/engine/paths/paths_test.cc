// The paths that serve some calls only, against the reference: rank-one scores on graphs, kernel
// means, short runs of keys, modifiers that only add, strides.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>

#include "cases/cases.h"
#include "engine/tiles/random.h"
#include "engine/reference/reference.h"
#include "engine/simd/hold.h"
#include "hwy/targets.h"
#include "tests/engine/comparison.h"
#include "tests/engine/arrays.h"
#include "tests/engine/bounds.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Case;
using engine::DType;

TEST(Paths, RankOneOnGraphs) {
  for (const auto& [structure, p] : {std::pair{"graph", 0.0}, {"graph_shuffled", 0.6}}) {
    for (const int64_t heads : {1, 3, 8, 17}) {
      for (const int64_t width : {3, 4, 8, 32, 40}) {
        const Case c{.score = "rank_one",
                     .structure = {structure},
                     .shape = {.heads = heads,
                               .key_heads = heads,
                               .queries = 300,
                               .keys = 280,
                               .width = 1,
                               .value_width = width},
                     .dropout_p = p};
        expect_agreement(c);
        EXPECT_EQ(path_of(cases::build(c).problem, engine::Task::kForward),
                  width % 4 == 0 ? "rank_one_graph" : "graph");
      }
    }
  }
}

// The fast path drops what the general one drops (a graph beside another structure takes that), on
// every target, and any number of workers gives its bits.
TEST(Paths, RankOneDropsTheSameEdgesOnEveryPath) {
  const Case c{
      .score = "rank_one",
      .structure = {"graph"},
      .shape =
          {.heads = 8, .key_heads = 8, .queries = 700, .keys = 700, .width = 1, .value_width = 8},
      .dropout_p = 0.6};
  const auto run = [&](const Case& made, size_t workers) {
    cases::Built built = cases::build(made);
    // One key in each of 8 columns of the value: an output is zero where all of its keys were
    // dropped.
    auto* value = static_cast<float*>(built.problem.value.data);
    for (int64_t i = 0; i < 700 * 8 * 8; ++i) value[i] = i / 64 % 8 == i % 8 ? 1.0f : 0.0f;
    if (workers == 0) built.problem.structure.all_of.push_back(engine::Dense{});
    engine::forward(built.problem, built.result, threads(std::max<size_t>(1, workers)));
    engine::backward(built.problem, built.result, built.gradients,
                     threads(std::max<size_t>(1, workers)));
    std::vector<std::vector<double>> all = {reference::Tensor<double>(built.result.output).data};
    for (const auto& array : arrays_of(built.gradients))
      all.push_back(reference::Tensor<double>(array.view).data);
    return all;
  };
  const auto general = run(c, 0);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    engine::hold_simd_target(hwy::TargetName(target));
    const auto fast = run(c, 1);
    int64_t zeros = 0;
    for (size_t i = 0; i < general[0].size(); ++i) {
      EXPECT_EQ(general[0][i] == 0, fast[0][i] == 0) << i;
      zeros += fast[0][i] == 0;
    }
    EXPECT_GT(zeros, 0);
    for (size_t a = 0; a < general.size(); ++a) {
      double worst = 0, largest = 0;
      for (size_t i = 0; i < general[a].size(); ++i) {
        worst = std::max(worst, std::abs(general[a][i] - fast[a][i]));
        largest = std::max(largest, std::abs(general[a][i]));
      }
      EXPECT_LE(worst, bounds::rounded(largest)) << a;
    }
    for (const size_t workers : {2, 3, 8})
      EXPECT_TRUE(run(c, workers) == fast) << hwy::TargetName(target) << " " << workers;
  }
  engine::hold_simd_target(nullptr);
}

// Points in one to three dimensions with one to four values take the path without tiles.
TEST(Paths, KernelMeans) {
  for (const char* score :
       {"kernel_gaussian", "kernel_laplace", "kernel_logistic", "kernel_sigmoid",
        "kernel_silverman", "kernel_cauchy", "kernel_box", "kernel_triangular",
        "kernel_epanechnikov", "kernel_quartic", "kernel_triweight", "kernel_tricube",
        "kernel_cosine", "kernel_gaussian_per_head", "kernel_epanechnikov_per_query",
        "kernel_gaussian_diagonal", "kernel_quartic_full"}) {
    for (const auto& [width, values] :
         {std::pair<int64_t, int64_t>{1, 1}, {2, 3}, {3, 1}, {3, 4}}) {
      for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{1, 1}, {5, 33}, {13, 1100}}) {
        const Case c{.score = score,
                     .normaliser = "kernel_ratio",
                     .shape = {.heads = 4,
                               .key_heads = 2,
                               .queries = queries,
                               .keys = keys,
                               .width = width,
                               .value_width = values},
                     .key_lengths = true,
                     .content = cases::Content::kPoison};
        expect_agreement(c);
        if (score == std::string("kernel_quartic_full") && width == 3)
          continue;  // its metric has a row more
        EXPECT_EQ(path_of(cases::build(c).problem, engine::Task::kForward), "kernel_mean");
      }
    }
    expect_agreement({.score = score,
                      .normaliser = "kernel_ratio",
                      .structure = {"ragged"},
                      .shape = {.queries = 67, .keys = 67, .width = 2, .value_width = 2}});
  }
}

// Queries so far from every key that all kernels underflow still have their nearest key's weight;
// any number of workers gives the same bits, on every target.
TEST(Paths, KernelMeansFarAway) {
  for (const auto& [score, distance] : {std::pair{"kernel_gaussian", 40.0f},
                                        {"kernel_laplace", 300.0f},
                                        {"kernel_logistic", 300.0f},
                                        {"kernel_sigmoid", 300.0f},
                                        {"kernel_cauchy", 300.0f}}) {
    const Case c{
        .score = score,
        .normaliser = "kernel_ratio",
        .shape = {
            .heads = 2, .key_heads = 2, .queries = 70, .keys = 1100, .width = 3, .value_width = 2}};
    const auto run = [&, score = score, distance = distance](size_t workers) {
      cases::Built built = cases::build(c);
      auto* query = static_cast<float*>(built.problem.query.data);
      for (size_t i = 0; i < 70 * 3; i += 9) query[i] += distance;
      SCOPED_TRACE(score);
      if (workers == 1) {
        expect_agreement(built, threads(workers));
      } else {
        engine::forward(built.problem, built.result, threads(workers));
        engine::backward(built.problem, built.result, built.gradients, threads(workers));
      }
      std::vector<Numbers> all = {numbers(built.result.output)};
      for (const NamedView& array : arrays_of(built.gradients)) all.push_back(numbers(array.view));
      return all;
    };
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      engine::hold_simd_target(hwy::TargetName(target));
      const auto one = run(1);
      for (const size_t workers : {2, 5})
        EXPECT_TRUE(run(workers) == one)
            << score << " " << hwy::TargetName(target) << " " << workers;
    }
    engine::hold_simd_target(nullptr);
  }
}

// Blocks of queries that reach a few of many keys hold a short run of them, begun anew when it is
// full, for every head of a group; strides have one too.
TEST(Paths, ShortRunsOfManyKeys) {
  for (const char* structure : {"window", "documents", "strided"}) {
    const Case c{.structure = {structure},
                 .shape = {.batch = 1,
                           .heads = 2,
                           .key_heads = 1,
                           .queries = 2300,
                           .keys = 2300,
                           .width = 4,
                           .value_width = 5}};
    SCOPED_TRACE(c.name());
    cases::Built built = cases::build(c);
    expect_agreement(built, threads(1));
  }
}

// A bias or ALiBi is added as scores are stored, whole vectors and what is left of a row, on every
// target.
TEST(Paths, ModifiersThatOnlyAdd) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    engine::hold_simd_target(hwy::TargetName(target));
    for (const char* modifier : {"bias", "alibi"}) {
      for (const int64_t keys : {1, 15, 64, 77, 600}) {
        expect_agreement({.modifiers = {modifier},
                          .structure = {"causal"},
                          .shape = {.queries = 70, .keys = keys, .width = 6, .value_width = 3}});
      }
    }
  }
  engine::hold_simd_target(nullptr);
}

// Rows a whole number of kilobytes apart are copied together before they are multiplied.
TEST(Paths, RowsThatCrowdTheCache) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    engine::hold_simd_target(hwy::TargetName(target));
    for (const char* structure : {"dense", "causal"}) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
        expect_agreement({.structure = {structure},
                          .shape = {.heads = 1,
                                    .key_heads = 1,
                                    .queries = 70,
                                    .keys = 150,
                                    .width = 256,
                                    .value_width = 256},
                          .dtype = dtype});
      }
    }
  }
  engine::hold_simd_target(nullptr);
}

TEST(Paths, StridedByResidues) {
  for (const char* normaliser : {"softmax_sink", "sigmoid"}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const double p : {0.0, 0.3}) {
        for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{333, 290}, {290, 300}}) {
          for (const int64_t stride : {4, 17, 128}) {
            const Case c{.normaliser = normaliser,
                         .structure = {"strided"},
                         .shape = {.heads = 4,
                                   .key_heads = 2,
                                   .queries = queries,
                                   .keys = keys,
                                   .width = 8,
                                   .value_width = 12},
                         .dtype = dtype,
                         .key_lengths = true,
                         .dropout_p = p};
            SCOPED_TRACE(c.name() + " stride " + std::to_string(stride));
            cases::Built built = cases::build(c);
            std::get<engine::Strided>(built.problem.structure.all_of[0]).stride = stride;
            expect_agreement(built, threads(3));
            EXPECT_EQ(path_of(built.problem, engine::Task::kForward), "strided");
          }
        }
      }
    }
  }
}

class StridedBackward : public testing::TestWithParam<const char*> {};

TEST_P(StridedBackward, InTwoPartsAgrees) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int64_t stride : {4, 17, 128, 400}) {
      const Case c{.normaliser = GetParam(),
                   .structure = {"strided"},
                   .shape = {.heads = 4,
                             .key_heads = 2,
                             .queries = 333,
                             .keys = 333,
                             .width = 8,
                             .value_width = 12},
                   .dtype = dtype,
                   .layout = cases::Layout::kStrided};
      SCOPED_TRACE(c.name() + " stride " + std::to_string(stride));
      std::vector<Numbers> first;
      for (const size_t workers : {1, 3}) {
        cases::Built built = cases::build(c);
        std::get<engine::Strided>(built.problem.structure.all_of[0]).stride = stride;
        EXPECT_EQ(path_of(built.problem, engine::Task::kBackward), "strided");
        if (workers == 1) {
          expect_agreement(built, threads(workers));
        } else {
          engine::forward(built.problem, built.result, threads(workers));
          engine::backward(built.problem, built.result, built.gradients, threads(workers));
        }
        std::vector<Numbers> all;
        for (const NamedView& array : arrays_of(built.gradients))
          all.push_back(numbers(array.view));
        if (first.empty()) first = all;
        EXPECT_TRUE(all == first) << workers;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Normalisers, StridedBackward,
                         testing::Values("softmax", "softmax_sink", "sigmoid"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fovea
