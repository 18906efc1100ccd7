// Every program of the case table compiled by NVRTC for both kinds of device in use, and what its
// kernels take of one: registers, shared memory, spills. No device is needed.
//
// `make test` compiles a sample that meets each row of each table; with FOVEA_SLOW=1 all of them are
// compiled (hours: several parts run side by side). kernel_resources.tsv holds the bounds; its first
// lines say how it is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <set>

#include "tests/torch/case_programs.h"
#include "tests/torch/kernel_bounds.h"
#include "torch/cuda/runtime/nvrtc.h"

namespace fovea {
namespace {

constexpr std::array kArchitectures = {"sm_80", "sm_90a"};
constexpr std::array kTypes = {at::kDouble, at::kFloat, at::kBFloat16};
constexpr size_t kShares = 8;

class KernelResources : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (!cuda::nvrtc_missing().empty()) GTEST_SKIP() << cuda::nvrtc_missing();
  }
  void TearDown() override { bounds_.write(); }
  KernelBounds bounds_;
};

// A walk through all tables at once. Each step takes one of its programs, another type and another
// device than the step before.
TEST_P(KernelResources, OfASampleStayWithinTheirTable) {
  const auto row = [](const auto& table, size_t n) { return table[n % table.size()].name; };
  const size_t scores = cases::scores().size(), steps = scores + cases::modifiers().size();
  for (size_t n = GetParam(); n < steps; n += kShares) {
    const bool modified = n >= scores;
    const char* const architecture = kArchitectures[n / 3 % kArchitectures.size()];
    // The first normaliser from here that has a meaning with the rest.
    for (size_t more = 0; more < cases::normalisers().size(); ++more) {
      const auto shapes =
          shapes_of(case_of_rows(modified ? "dot" : row(cases::scores(), n),
                                 modified ? row(cases::modifiers(), n - scores) : "",
                                 row(cases::normalisers(), n + more), row(cases::structures(), n)));
      const auto programs =
          programs_of_case(shapes[n % shapes.size()], kTypes[n % kTypes.size()], architecture);
      if (programs.empty()) continue;
      bounds_.check(programs[n / 2 % programs.size()], architecture);
      break;
    }
  }
  EXPECT_GT(bounds_.compiled(), 3);
}

TEST_P(KernelResources, OfAllStayWithinTheirTable) {
  if (!std::getenv("FOVEA_SLOW")) GTEST_SKIP() << "hours; FOVEA_SLOW=1 runs it";
  const char* given = std::getenv("FOVEA_KERNELS_EVERY");
  const size_t every = given ? std::max(1, std::atoi(given)) : 1;
  for (const char* architecture : kArchitectures) {
    const auto programs = programs_of_cases(architecture);
    // In steps of a number without a common divisor, so that a part of them is fair to each table.
    constexpr size_t kStep = 7919;
    for (size_t n = GetParam() * every; n < programs.size(); n += kShares * every)
      bounds_.check(programs[n * kStep % programs.size()], architecture);
  }
}

// A combination for each driver, with the types that the driver takes: in turns with the devices, or,
// where the table is written, each for both.
TEST_P(KernelResources, OfEachDriverStayWithinTheirTable) {
  struct Driver {
    const char *score, *normaliser, *structure;
    size_t shape;  // which of shapes_of
    std::vector<at::ScalarType> types;
  };
  const std::vector<at::ScalarType> all(kTypes.begin(), kTypes.end()), narrow{at::kBFloat16};
  const std::vector<Driver> drivers{
      {"dot", "softmax", "causal", 0, all},
      {"dot", "softmax", "window", 1, narrow},               // decoding
      {"dot", "sigmoid", "dense", 2, narrow},                // dropout
      {"kernel_gaussian", "kernel_ratio", "dense", 1, all},  // points
      {"additive", "softmax", "dense", 0, {at::kFloat, at::kBFloat16}},
      {"rank_one", "softmax", "graph", 0, all},
      {"dot", "sparsemax", "graph", 0, all},
      {"cosine", "entmax_1.3", "documents", 0, all}};
  const bool writes = std::getenv("FOVEA_KERNEL_TABLE") != nullptr;
  const Driver& driver = drivers[GetParam()];
  const auto shapes =
      shapes_of(case_of_rows(driver.score, "", driver.normaliser, driver.structure));
  size_t turn = 0;
  for (const auto type : driver.types) {
    for (size_t n = 0; n < kArchitectures.size(); ++n) {
      const char* const architecture = kArchitectures[(GetParam() + n) % kArchitectures.size()];
      for (const auto& one : programs_of_case(shapes.at(driver.shape), type, architecture)) {
        if (writes || turn++ % 5 == 0) bounds_.check(one, architecture);
      }
    }
  }
  EXPECT_GT(bounds_.compiled(), 0);
}

INSTANTIATE_TEST_SUITE_P(Parts, KernelResources, testing::Range(size_t{0}, kShares));

// Float16 has the drivers of bfloat16, with other instructions.
TEST(KernelResourcesOfHalf, StayWithinTheirTable) {
  if (!cuda::nvrtc_missing().empty()) GTEST_SKIP() << cuda::nvrtc_missing();
  KernelBounds bounds;
  for (const auto& one :
       programs_of_case(case_of_rows("dot", "alibi", "softmax", "window"), at::kHalf, "sm_80"))
    bounds.check(one, "sm_80");
  bounds.write();
}

// Thresholds on tensor cores, of rows of 32 and of 128 columns.
TEST(KernelResourcesOfThresholds, StayWithinTheirTable) {
  if (!cuda::nvrtc_missing().empty()) GTEST_SKIP() << cuda::nvrtc_missing();
  KernelBounds bounds;
  const bool writes = std::getenv("FOVEA_KERNEL_TABLE") != nullptr;
  size_t turn = 0;
  for (const char* normaliser : {"sparsemax", "entmax_1.3", "top_k"}) {
    for (const int width : {32, 128}) {
      Case c = case_of_rows("dot", "alibi", normaliser, "window");
      c.shape.width = c.shape.value_width = width;
      for (const char* architecture : kArchitectures) {
        for (auto one : programs_of_case(c, at::kBFloat16, architecture)) {
          EXPECT_TRUE(one.program.has_lists) << one.what;
          if (width == 128) one.kind = "128 columns, " + one.kind;
          if (writes || turn++ % 7 == 0) bounds.check(one, architecture);
        }
      }
    }
  }
  bounds.write();
}

// Rows of 64 and of 128 columns have Hopper's products on Hopper, and none of them elsewhere.
class KernelResourcesOfWideRows : public testing::TestWithParam<const char*> {};

TEST_P(KernelResourcesOfWideRows, StayWithinTheirTable) {
  if (!cuda::nvrtc_missing().empty()) GTEST_SKIP() << cuda::nvrtc_missing();
  KernelBounds bounds;
  for (const int64_t width : {64, 128}) {
    for (const char* modifier : {"", "alibi", "bias"}) {
      Case c = case_of_rows("dot", modifier, "softmax", "causal");
      c.shape.width = c.shape.value_width = width;
      for (auto one : programs_of_case(c, at::kBFloat16, GetParam())) {
        const bool panels = one.program.text.find("kPanels = true") != std::string::npos;
        EXPECT_EQ(panels, one.program.on_tensor_cores && GetParam() == std::string("sm_90a"))
            << one.what;
        one.kind = std::to_string(width) + " columns, " + one.kind;
        bounds.check(one, GetParam());
      }
    }
  }
  bounds.write();
}

INSTANTIATE_TEST_SUITE_P(Architectures, KernelResourcesOfWideRows,
                         testing::ValuesIn(kArchitectures));

// The combinations are many and the programs fewer; none is lost.
TEST(KernelPrograms, AreThoseOfEveryCombination) {
  const auto programs = programs_of_cases("sm_80");
  std::set<std::string> kinds;
  for (const auto& one : programs) kinds.insert(one.kind.substr(0, one.kind.find(',')));
  EXPECT_EQ(kinds, (std::set<std::string>{"decoding", "graph", "panels", "parts", "points",
                                          "tensor cores", "tiles"}));
  EXPECT_GT(programs.size(), 4000u);
  std::cout << programs.size() << " programs for each architecture\n";
}

}  // namespace
}  // namespace fovea
