// Forward and backward of the drivers against the reference: sizes around every block they cut,
// every structure, storage types, grouped heads, NaN where nobody looks, and the same bits for any
// number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>

#include "cases/cases.h"
#include "engine/tiles/random.h"
#include "engine/reference/reference.h"
#include "engine/simd/hold.h"
#include "hwy/targets.h"
#include "tests/engine/bounds.h"
#include "tests/engine/comparison.h"
#include "tests/engine/run.h"
#include "tests/engine/arrays.h"

namespace fovea {
namespace {

using cases::Case;
using engine::DType;

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

TEST(Tiles, EveryStructureAndSize) {
  for (const auto& structure : kStructures) {
    for (const auto& [queries, keys] :
         {std::pair<int64_t, int64_t>{1, 1}, {5, 7}, {64, 64}, {65, 129}, {130, 63}, {67, 600}}) {
      expect_agreement(
          {.structure = structure,
           .shape = {.queries = queries, .keys = keys, .width = 20, .value_width = 19}});
    }
  }
}

TEST(Tiles, EmptySizes) {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{0, 3}, {3, 0}, {0, 0}}) {
    expect_agreement({.shape = {.queries = queries, .keys = keys}});
  }
  expect_agreement({.shape = {.batch = 0}});
}

TEST(Tiles, Widths) {
  for (const int64_t width : {1, 2, 15, 16, 17, 64, 80, 129, 1024}) {
    expect_agreement({.structure = {"causal"},
                      .shape = {.queries = 33, .keys = 33, .width = width, .value_width = width}});
  }
}

TEST(Tiles, StorageTypes) {
  for (const DType dtype : {DType::kFloat64, DType::kBFloat16, DType::kFloat16}) {
    for (const auto& structure : kStructures) {
      expect_agreement({.structure = structure,
                        .shape = {.queries = 70, .keys = 140, .width = 24, .value_width = 8},
                        .dtype = dtype});
    }
  }
}

TEST(Tiles, GroupedHeadsStridesAndLengths) {
  for (const auto& structure : kStructures) {
    expect_agreement({.structure = structure,
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

TEST(Tiles, NothingLeaksFromWhereNobodyLooks) {
  for (const auto& structure : kStructures) {
    expect_agreement({.structure = structure,
                      .shape = {.queries = 67, .keys = 140, .width = 8, .value_width = 12},
                      .key_lengths = true,
                      .content = cases::Content::kPoison});
  }
}

TEST(Tiles, LargeScores) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    expect_agreement({.structure = {"causal"},
                      .shape = {.queries = 67, .keys = 140},
                      .dtype = dtype,
                      .content = cases::Content::kLarge});
  }
}

TEST(Tiles, DropoutIsDrawnByPosition) {
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
      double sum = 0, size = 0;
      for (size_t n = 0; n < row.keys.size(); ++n) {
        const bool drops = engine::random_pair(key, static_cast<uint32_t>(row.keys[n])) <
                           engine::dropout_threshold(0.3);
        const auto& v = built.problem.value;
        const double term =
            row.weights[n] / 0.7 *
            static_cast<float*>(v.data)[row.batch * v.stride[0] + row.head * v.stride[1] +
                                        row.keys[n] * v.stride[2] + e];
        if (!drops) sum += term;
        size += std::fabs(term);
        dropped += drops;
        ++pairs;
      }
      expect_close(
          static_cast<float*>(out.data)[row.batch * out.stride[0] + row.head * out.stride[1] +
                                        row.query * out.stride[2] + e],
          sum, bounds::rounded(size));
    }
  }
  // A pair is drawn once, and counted for each element of its value.
  const auto width = static_cast<double>(built.problem.value.size[3]),
             draws = static_cast<double>(pairs) / width;
  expect_close(static_cast<double>(dropped) / width, 0.3 * draws, bounds::hits(draws, 0.3));
}

TEST(Tiles, FewQueriesAndManyKeys) {
  for (const auto& structure : kStructures) {
    for (const char* normaliser : {"softmax", "softmax_sink"}) {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
        expect_agreement({.normaliser = normaliser,
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
  // Longer tickets, the last of them cut short.
  for (const auto& structure : {"dense", "causal_bottom_right", "window"}) {
    expect_agreement({.structure = {structure},
                      .shape = {.heads = 4, .key_heads = 2, .queries = 1, .keys = 33333},
                      .key_lengths = true});
  }
  const auto built = cases::build({.shape = {.queries = 1, .keys = 3000}});
  EXPECT_EQ(path_of(built.problem, engine::Task::kForward, &built.result), "decode");
}

TEST(Tiles, Sink) {
  expect_agreement({.normaliser = "softmax_sink",
                    .structure = {"causal"},
                    .shape = {.queries = 67, .keys = 140}});
  expect_agreement({.normaliser = "softmax_one_sink", .shape = {.queries = 3, .keys = 14}});
}

TEST(Tiles, StreamingNormalisers) {
  for (const char* normaliser : {"kernel_ratio", "unnormalised", "uniform", "sigmoid"}) {
    for (const auto& structure : kStructures) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
        // A ratio of signed scores may have any condition number: more keys make a sum near zero
        // likely.
        const int64_t keys =
            normaliser == std::string("kernel_ratio") && dtype == DType::kFloat32 ? 5 : 140;
        expect_agreement({.normaliser = normaliser,
                          .structure = structure,
                          .shape = {.queries = 67, .keys = keys, .width = 8, .value_width = 12},
                          .dtype = dtype,
                          .key_lengths = true,
                          .content = cases::Content::kPoison});
      }
    }
  }
}

// Each normaliser and structure a test of its own: together they would be the longest of all, above
// all where a long double is emulated.
class ThresholdTiles
    : public testing::TestWithParam<std::tuple<const char*, std::vector<std::string>>> {};

TEST_P(ThresholdTiles, Agree) {
  const auto& [normaliser, structure] = GetParam();
  for (const double p : {0.0, 0.3}) {
    expect_agreement({.normaliser = normaliser,
                      .structure = structure,
                      .shape = {.batch = 1,
                                .heads = 2,
                                .key_heads = 1,
                                .queries = 67,
                                .keys = 140,
                                .width = 8,
                                .value_width = 12},
                      .dtype = DType::kFloat64,
                      .dropout_p = p});
  }
}

INSTANTIATE_TEST_SUITE_P(Choices, ThresholdTiles,
                         testing::Combine(testing::Values("sparsemax", "entmax", "entmax_alpha",
                                                          "top_k", "hard"),
                                          testing::ValuesIn(kStructures)),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param);
                           for (const std::string& part : std::get<1>(info.param))
                             name += "_" + part;
                           return name;
                         });

TEST(Tiles, SameBitsForAnyNumberOfThreads) {
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

TEST(Tiles, NamesTheRowOfAScoreThatIsNotANumber) {
  cases::Built built =
      cases::build({.structure = {"causal"}, .shape = {.queries = 70, .keys = 70}});
  // Key 66 of batch 1, key head 1: queries 66 to 69 see it.
  const auto& key = built.problem.key;
  static_cast<float*>(key.data)[1 * key.stride[0] + 1 * key.stride[1] + 66 * key.stride[2]] =
      std::nanf("");
  built.problem.check_finite = true;
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
