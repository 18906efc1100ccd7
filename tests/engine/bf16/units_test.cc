// Every unit of bfloat16 products, and float32 arithmetic, at sizes around their blocks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases/cases.h"
#include "engine/simd/hold.h"
#include "tests/engine/comparison.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using engine::DType;

class Bf16Unit : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      engine::hold_bf16_unit(GetParam());
    } catch (const InvalidArgument& e) {
      GTEST_SKIP() << e.what();
    }
  }
  void TearDown() override { engine::hold_bf16_unit(nullptr); }
};

TEST_P(Bf16Unit, AgreesWithTheReferenceAndForAnyNumberOfWorkers) {
  const std::vector<std::vector<std::string>> structures = {
      {"dense"}, {"causal"}, {"window"}, {"keep"}, {"ragged", "causal"}, {"graph"}};
  for (const auto& structure : structures) {
    for (const auto& [width, value_width] :
         {std::pair<int64_t, int64_t>{64, 64}, {24, 19}, {8, 48}}) {
      expect_agreement({.structure = structure,
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
  expect_agreement({.normaliser = "sigmoid",
                    .structure = {"causal"},
                    .shape = {.queries = 70, .keys = 140, .width = 80, .value_width = 33},
                    .dtype = DType::kBFloat16});
  expect_agreement({.normaliser = "sparsemax",
                    .shape = {.queries = 70, .keys = 140, .width = 80, .value_width = 33},
                    .dtype = DType::kBFloat16});
  expect_agreement({.shape = {.queries = 40, .keys = 90, .width = 32, .value_width = 32},
                    .dtype = DType::kBFloat16,
                    .dropout_p = 0.3});
  Numbers first;
  for (const size_t workers : {1, 2, 3, 8}) {
    cases::Built built =
        cases::build({.structure = {"causal"},
                      .shape = {.queries = 300, .keys = 700, .width = 64, .value_width = 64},
                      .dtype = DType::kBFloat16});
    engine::forward(built.problem, built.result, threads(workers));
    const auto output = numbers(built.result.output);
    if (first.empty()) first = output;
    EXPECT_TRUE(output == first) << workers;
  }
}

INSTANTIATE_TEST_SUITE_P(Units, Bf16Unit, ::testing::Values("none", "dpbf16", "AMX"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fovea
