// Forward and backward of the drivers against the reference: sizes around every block they cut,
// every structure, storage types, grouped heads, NaN where nobody looks, and the same bits for any
// number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <thread>

#include "cases/cases.h"
#include "engine/random.h"
#include "engine/reference/reference.h"
#include "engine/simd/hold.h"
#include "hwy/targets.h"
#include "tests/engine/arrays.h"

namespace fovea {
namespace {

using cases::Case;
using engine::DType;

// Threads that come and go: `workers` of them for each call.
engine::Parallel threads(size_t workers) {
  return {.workers = workers, .run = [](size_t n, const std::function<void(size_t)>& body) {
            std::vector<std::thread> all;
            for (size_t i = 0; i < n; ++i) all.emplace_back([&body, i] { body(i); });
            for (auto& thread : all) thread.join();
          }};
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-11;
    case DType::kBFloat16:
      return 2e-2;
    case DType::kFloat16:
      return 3e-3;
    default:
      return 3e-5;
  }
}

// Largest difference over the largest magnitude, NaN when either holds one.
double difference(const reference::Tensor<double>& got, const std::vector<double>& want) {
  EXPECT_EQ(got.data.size(), want.size());
  double worst = 0, scale = 1e-3;
  for (size_t i = 0; i < std::min(got.data.size(), want.size()); ++i) {
    if (got.data[i] == want[i]) continue;  // an empty row's lse is -infinity in both
    scale = std::max(scale, std::abs(want[i]));
    const double d = std::abs(got.data[i] - want[i]);
    if (std::isnan(d)) return d;
    worst = std::max(worst, d);
  }
  return worst / scale;
}

// Scores of 1e4 are known to 1e-3 in float32, whoever computes them.
double tolerance(const Case& c) {
  return c.content == cases::Content::kLarge && c.dtype != DType::kFloat64 ? 2e-3
                                                                           : tolerance(c.dtype);
}

void expect_right(const Case& c, size_t workers = 2) {
  SCOPED_TRACE(c.name());
  cases::Built built = cases::build(c);
  int64_t empty = -1;
  built.result.empty_rows = &empty;
  const engine::Parallel parallel = threads(workers);
  engine::forward(built.problem, built.result, parallel);
  const auto want = reference::forward<double>(built.problem);
  EXPECT_EQ(empty, want.empty_rows);
  EXPECT_LE(difference(reference::Tensor<double>(built.result.output), want.output.data),
            tolerance(c))
      << "output";
  if (built.result.lse) {
    EXPECT_LE(difference(reference::Tensor<double>(built.result.lse), want.lse), tolerance(c))
        << "lse";
  }
  engine::backward(built.problem, built.result, built.gradients, parallel);
  const auto gradients =
      reference::backward<double>(built.problem, built.gradients.output, built.gradients.lse);
  const auto got = arrays_of(built.gradients);
  const auto wanted = arrays_of(gradients);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LE(difference(reference::Tensor<double>(got[i].view), wanted[i]->data), 4 * tolerance(c))
        << got[i].name;
  }
}

const std::vector<std::vector<std::string>> kStructures = {{"dense"},
                                                           {"causal"},
                                                           {"causal_bottom_right"},
                                                           {"window"},
                                                           {"window_left"},
                                                           {"prefix"},
                                                           {"documents"},
                                                           {"documents_per_batch"},
                                                           {"blocks"},
                                                           {"keep"},
                                                           {"keep_keys"},
                                                           {"ragged"},
                                                           {"strided"},
                                                           {"fixed"},
                                                           {"graph"},
                                                           {"graph_shuffled"},
                                                           {"graph", "causal"},
                                                           {"graph", "keep"},
                                                           {"window", "documents"},
                                                           {"causal", "keep"},
                                                           {"ragged", "causal"}};

TEST(Drivers, EveryStructureAndSize) {
  for (const auto& structure : kStructures) {
    for (const auto& [queries, keys] :
         {std::pair<int64_t, int64_t>{1, 1}, {5, 7}, {64, 64}, {65, 129}, {130, 63}, {67, 600}}) {
      expect_right({.structure = structure,
                    .shape = {.queries = queries, .keys = keys, .width = 20, .value_width = 19}});
    }
  }
}

TEST(Drivers, EmptySizes) {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{0, 3}, {3, 0}, {0, 0}}) {
    expect_right({.shape = {.queries = queries, .keys = keys}});
  }
  expect_right({.shape = {.batch = 0}});
}

TEST(Drivers, Widths) {
  for (const int64_t width : {1, 2, 15, 16, 17, 64, 80, 129, 1024}) {
    expect_right({.structure = {"causal"},
                  .shape = {.queries = 33, .keys = 33, .width = width, .value_width = width}});
  }
}

TEST(Drivers, StorageTypes) {
  for (const DType dtype : {DType::kFloat64, DType::kBFloat16, DType::kFloat16}) {
    for (const auto& structure : kStructures) {
      expect_right({.structure = structure,
                    .shape = {.queries = 70, .keys = 140, .width = 24, .value_width = 8},
                    .dtype = dtype});
    }
  }
}

// Every unit of bfloat16 products this processor has, and float32 arithmetic, at sizes around their
// blocks.
TEST(Drivers, Bf16ByEveryUnit) {
  for (const char* unit : {"none", "dpbf16", "AMX"}) {
    try {
      engine::hold_bf16_unit(unit);
    } catch (const InvalidArgument& e) {
      std::cout << "not on this processor: " << e.what() << "\n";
      continue;
    }
    SCOPED_TRACE(unit);
    const std::vector<std::vector<std::string>> structures = {
        {"dense"}, {"causal"}, {"window"}, {"keep"}, {"ragged", "causal"}, {"graph"}};
    for (const auto& structure : structures) {
      for (const auto& [width, value_width] :
           {std::pair<int64_t, int64_t>{64, 64}, {24, 19}, {8, 48}}) {
        expect_right({.structure = structure,
                      .shape = {.batch = 1,
                                .heads = 2,
                                .key_heads = 1,
                                .queries = 117,
                                .keys = 541,
                                .width = width,
                                .value_width = value_width},
                      .dtype = DType::kBFloat16,
                      .key_lengths = true,
                      .content = cases::Content::kPoison});
      }
    }
    expect_right({.normaliser = "sigmoid",
                  .structure = {"causal"},
                  .shape = {.queries = 70, .keys = 140, .width = 80, .value_width = 33},
                  .dtype = DType::kBFloat16});
    expect_right({.normaliser = "sparsemax",
                  .shape = {.queries = 70, .keys = 140, .width = 80, .value_width = 33},
                  .dtype = DType::kBFloat16});
    expect_right({.shape = {.queries = 40, .keys = 90, .width = 32, .value_width = 32},
                  .dtype = DType::kBFloat16,
                  .dropout_p = 0.3});
    std::vector<double> first;
    for (const size_t workers : {1, 2, 3, 8}) {
      cases::Built built =
          cases::build({.structure = {"causal"},
                        .shape = {.queries = 300, .keys = 700, .width = 64, .value_width = 64},
                        .dtype = DType::kBFloat16});
      engine::forward(built.problem, built.result, threads(workers));
      const auto output = reference::Tensor<double>(built.result.output).data;
      if (first.empty()) first = output;
      EXPECT_TRUE(output == first) << workers;
    }
  }
  engine::hold_bf16_unit(nullptr);
}

TEST(Drivers, GroupedHeadsStridesAndLengths) {
  for (const auto& structure : kStructures) {
    expect_right({.structure = structure,
                  .shape = {.heads = 6,
                            .key_heads = 2,
                            .queries = 66,
                            .keys = 131,
                            .width = 8,
                            .value_width = 12},
                  .key_lengths = true,
                  .layout = cases::Layout::kStrided});
  }
}

TEST(Drivers, NothingLeaksFromWhereNobodyLooks) {
  for (const auto& structure : kStructures) {
    expect_right({.structure = structure,
                  .shape = {.queries = 67, .keys = 140, .width = 8, .value_width = 12},
                  .key_lengths = true,
                  .content = cases::Content::kPoison});
  }
}

TEST(Drivers, LargeScores) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    expect_right({.structure = {"causal"},
                  .shape = {.queries = 67, .keys = 140},
                  .dtype = dtype,
                  .content = cases::Content::kLarge});
  }
}

TEST(Drivers, DropoutIsDrawnByPosition) {
  cases::Built built = cases::build({.structure = {"causal"},
                                     .shape = {.queries = 67, .keys = 140, .width = 16},
                                     .dropout_p = 0.3});
  engine::forward(built.problem, built.result, threads(2));
  const auto& out = built.result.output;
  engine::Problem whole = built.problem;
  whole.dropout_p = 0;
  int64_t dropped = 0, pairs = 0;
  for (const auto& row : reference::forward<double>(whole).rows) {
    const uint64_t key = engine::random_row(built.problem.seed, row.batch, row.head, row.query);
    for (int64_t e = 0; e < built.problem.value.size[3]; ++e) {
      double sum = 0;
      for (size_t n = 0; n < row.keys.size(); ++n) {
        const bool drops = engine::random_pair(key, static_cast<uint32_t>(row.keys[n])) <
                           engine::dropout_threshold(0.3);
        const auto& v = built.problem.value;
        if (!drops)
          sum += row.weights[n] / 0.7 *
                 static_cast<float*>(v.data)[row.batch * v.stride[0] + row.head * v.stride[1] +
                                             row.keys[n] * v.stride[2] + e];
        dropped += drops;
        ++pairs;
      }
      EXPECT_NEAR(
          static_cast<float*>(out.data)[row.batch * out.stride[0] + row.head * out.stride[1] +
                                        row.query * out.stride[2] + e],
          sum, 1e-5);
    }
  }
  EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(pairs), 0.3, 0.02);
}

TEST(Drivers, FewQueriesAndManyKeys) {
  for (const auto& structure : kStructures) {
    for (const char* normaliser : {"softmax", "softmax_sink"}) {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
        expect_right({.normaliser = normaliser,
                      .structure = structure,
                      .shape = {.heads = 6,
                                .key_heads = 2,
                                .queries = 3,
                                .keys = 2500,
                                .width = 20,
                                .value_width = 19},
                      .dtype = dtype,
                      .key_lengths = true});
      }
    }
  }
  const auto built = cases::build({.shape = {.queries = 1, .keys = 300}});
  EXPECT_EQ(engine::explain_dispatch(built.problem)
                .find("decode: keys split into chunks, read once where they lie: taken"),
            0u);
}

TEST(Drivers, Sink) {
  expect_right({.normaliser = "softmax_sink",
                .structure = {"causal"},
                .shape = {.queries = 67, .keys = 140}});
  expect_right({.normaliser = "softmax_one_sink", .shape = {.queries = 3, .keys = 14}});
}

TEST(Drivers, StreamingNormalisers) {
  for (const char* normaliser : {"kernel_ratio", "unnormalised", "uniform", "sigmoid"}) {
    for (const auto& structure : kStructures) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
        // A ratio of signed scores may have any condition number: more keys make a sum near zero
        // likely.
        const int64_t keys =
            normaliser == std::string("kernel_ratio") && dtype == DType::kFloat32 ? 5 : 140;
        expect_right({.normaliser = normaliser,
                      .structure = structure,
                      .shape = {.queries = 67, .keys = keys, .width = 8, .value_width = 12},
                      .dtype = dtype,
                      .key_lengths = true,
                      .content = cases::Content::kPoison});
      }
    }
  }
}

TEST(Drivers, ThresholdNormalisers) {
  for (const char* normaliser : {"sparsemax", "entmax", "entmax_alpha", "top_k", "hard"}) {
    for (const auto& structure : kStructures) {
      for (const double p : {0.0, 0.3}) {
        expect_right({.normaliser = normaliser,
                      .structure = structure,
                      .shape = {.queries = 67, .keys = 140, .width = 8, .value_width = 12},
                      .dtype = DType::kFloat64,
                      .dropout_p = p});
      }
    }
  }
}

// Enough heads and few weights: backward goes by the pairs that have weight. Any number of workers
// gives the same bits.
TEST(Drivers, ThresholdNormalisersByTheirSupport) {
  for (const char* normaliser : {"sparsemax", "entmax", "entmax_alpha", "top_k"}) {
    for (const auto& structure :
         std::vector<std::vector<std::string>>{{"dense"}, {"causal"}, {"ragged"}, {"keep"}}) {
      for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kBFloat16}) {
        expect_right({.normaliser = normaliser,
                      .structure = structure,
                      .shape = {.batch = 2,
                                .heads = 4,
                                .key_heads = 2,
                                .queries = 70,
                                .keys = 330,
                                .width = 24,
                                .value_width = 12},
                      .dtype = dtype,
                      .key_lengths = structure[0] != "ragged",
                      .content = dtype == DType::kFloat64 ? cases::Content::kLarge
                                                          : cases::Content::kPoison});
      }
    }
  }
  const auto run = [](size_t workers) {
    cases::Built built = cases::build({.normaliser = "sparsemax",
                                       .shape = {.heads = 4,
                                                 .key_heads = 4,
                                                 .queries = 130,
                                                 .keys = 500,
                                                 .width = 16,
                                                 .value_width = 16}});
    engine::forward(built.problem, built.result, threads(workers));
    engine::backward(built.problem, built.result, built.gradients, threads(workers));
    std::vector<std::vector<double>> all;
    for (const auto& array : arrays_of(built.gradients))
      all.push_back(reference::Tensor<double>(array.view).data);
    return all;
  };
  const auto one = run(1);
  for (const size_t workers : {2, 5}) EXPECT_TRUE(run(workers) == one) << workers;
}

TEST(Drivers, RankOneOnGraphs) {
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
        expect_right(c);
        const auto text = engine::explain_dispatch(cases::build(c).problem);
        EXPECT_EQ(text.find("in one sweep: taken") != std::string::npos, width % 4 == 0) << text;
      }
    }
  }
}

// The fast path drops what the general one drops (a graph beside another structure takes that), on
// every target, and any number of workers gives its bits.
TEST(Drivers, RankOneDropsTheSameEdgesOnEveryPath) {
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
      double worst = 0;
      for (size_t i = 0; i < general[a].size(); ++i)
        worst = std::max(worst, std::abs(general[a][i] - fast[a][i]));
      EXPECT_LE(worst, 2e-5) << a;
    }
    for (const size_t workers : {2, 3, 8})
      EXPECT_TRUE(run(c, workers) == fast) << hwy::TargetName(target) << " " << workers;
  }
  engine::hold_simd_target(nullptr);
}

// Points in one to three dimensions with one to four values take the path without tiles.
TEST(Drivers, KernelMeans) {
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
        expect_right(c);
        if (score == std::string("kernel_quartic_full") && width == 3)
          continue;  // its metric has a row more
        EXPECT_NE(engine::explain_dispatch(cases::build(c).problem).find("no tile stored: taken"),
                  std::string::npos);
      }
    }
    expect_right({.score = score,
                  .normaliser = "kernel_ratio",
                  .structure = {"ragged"},
                  .shape = {.queries = 67, .keys = 67, .width = 2, .value_width = 2}});
  }
}

// Queries so far from every key that all kernels underflow still have their nearest key's weight;
// any number of workers gives the same bits, on every target.
TEST(Drivers, KernelMeansFarAway) {
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
    const auto run = [&](size_t workers) {
      cases::Built built = cases::build(c);
      auto* query = static_cast<float*>(built.problem.query.data);
      for (size_t i = 0; i < 70 * 3; i += 9) query[i] += distance;
      engine::forward(built.problem, built.result, threads(workers));
      engine::backward(built.problem, built.result, built.gradients, threads(workers));
      const auto want = reference::forward<double>(built.problem);
      EXPECT_LE(difference(reference::Tensor<double>(built.result.output), want.output.data), 1e-4)
          << score;
      const auto gradients =
          reference::backward<double>(built.problem, built.gradients.output, built.gradients.lse);
      std::vector<std::vector<double>> all = {reference::Tensor<double>(built.result.output).data};
      const auto got = arrays_of(built.gradients);
      const auto wanted = arrays_of(gradients);
      for (size_t i = 0; i < got.size(); ++i) {
        all.push_back(reference::Tensor<double>(got[i].view).data);
        EXPECT_LE(difference(reference::Tensor<double>(got[i].view), wanted[i]->data), 1e-3)
            << score << " " << got[i].name;
      }
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
TEST(Drivers, ShortRunsOfManyKeys) {
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
    engine::forward(built.problem, built.result, threads(1));
    const auto want = reference::forward<double>(built.problem);
    EXPECT_LE(difference(reference::Tensor<double>(built.result.output), want.output.data),
              tolerance(c));
  }
}

// A bias or ALiBi is added as scores are stored, whole vectors and what is left of a row, on every
// target.
TEST(Drivers, ModifiersThatOnlyAdd) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    engine::hold_simd_target(hwy::TargetName(target));
    for (const char* modifier : {"bias", "alibi"}) {
      for (const int64_t keys : {1, 15, 64, 77, 600}) {
        expect_right({.modifiers = {modifier},
                      .structure = {"causal"},
                      .shape = {.queries = 70, .keys = keys, .width = 6, .value_width = 3}});
      }
    }
  }
  engine::hold_simd_target(nullptr);
}

TEST(Drivers, StridedByResidues) {
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
            int64_t empty = 0;
            built.result.empty_rows = &empty;
            engine::forward(built.problem, built.result, threads(3));
            const auto want = reference::forward<double>(built.problem);
            EXPECT_EQ(empty, want.empty_rows);
            EXPECT_LE(difference(reference::Tensor<double>(built.result.output), want.output.data),
                      tolerance(dtype));
            EXPECT_NE(engine::explain_dispatch(built.problem).find("of its own: taken"),
                      std::string::npos);
          }
        }
      }
    }
  }
}

TEST(Drivers, StridedBackwardInTwoParts) {
  for (const char* normaliser : {"softmax", "softmax_sink", "sigmoid"}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const int64_t stride : {4, 17, 128, 400}) {
        const Case c{.normaliser = normaliser,
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
        std::vector<std::vector<double>> first;
        for (const size_t workers : {1, 3}) {
          cases::Built built = cases::build(c);
          std::get<engine::Strided>(built.problem.structure.all_of[0]).stride = stride;
          engine::forward(built.problem, built.result, threads(workers));
          engine::backward(built.problem, built.result, built.gradients, threads(workers));
          std::vector<std::vector<double>> all;
          const auto want = reference::backward<double>(built.problem, built.gradients.output,
                                                        built.gradients.lse);
          const auto got = arrays_of(built.gradients);
          const auto wanted = arrays_of(want);
          ASSERT_EQ(got.size(), wanted.size());
          for (size_t i = 0; i < got.size(); ++i) {
            all.push_back(reference::Tensor<double>(got[i].view).data);
            EXPECT_LE(difference(reference::Tensor<double>(got[i].view), wanted[i]->data),
                      4 * tolerance(c))
                << got[i].name;
          }
          if (first.empty()) first = all;
          EXPECT_TRUE(all == first) << workers;
        }
      }
    }
  }
}

TEST(Drivers, SameBitsForAnyNumberOfThreads) {
  for (const auto& structure : kStructures) {
    Case c{.structure = structure,
           .shape = {
               .batch = 1, .heads = 3, .key_heads = 1, .queries = 300, .keys = 700, .width = 16}};
    SCOPED_TRACE(c.name());
    std::vector<std::vector<double>> first;
    for (const size_t workers : {1, 2, 3, 8, 2}) {
      cases::Built built = cases::build(c);
      engine::forward(built.problem, built.result, threads(workers));
      engine::backward(built.problem, built.result, built.gradients, threads(workers));
      std::vector<std::vector<double>> all = {reference::Tensor<double>(built.result.output).data};
      for (const auto& array : arrays_of(built.gradients))
        all.push_back(reference::Tensor<double>(array.view).data);
      if (first.empty()) first = all;
      EXPECT_TRUE(all == first) << workers;
    }
  }
}

TEST(Drivers, NamesTheRowOfAScoreThatIsNotANumber) {
  cases::Built built =
      cases::build({.structure = {"causal"}, .shape = {.queries = 70, .keys = 70}});
  // Key 66 of batch 1, key head 1: queries 66 to 69 see it.
  const auto& key = built.problem.key;
  static_cast<float*>(key.data)[1 * key.stride[0] + 1 * key.stride[1] + 66 * key.stride[2]] =
      std::nanf("");
  try {
    engine::forward(built.problem, built.result, threads(2));
    FAIL() << "no error";
  } catch (const InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("batch 1, head 1, query 66"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace fovea
