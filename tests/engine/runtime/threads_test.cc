// The same bits for any number of workers, in any order of work, twice in a row, under each SIMD
// target of the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "hwy/targets.h"
#include "tests/engine/arrays.h"
#include "tests/engine/comparison.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Case;
using engine::Parallel;

Parallel backwards() {
  return {1, [](size_t n, const std::function<void(size_t)>& body) {
            while (n-- > 0) body(n);
          }};
}

// Output, lse, statistics and all gradients of a run.
std::vector<Numbers> everything(const Case& c, const Parallel& parallel) {
  cases::Built built = cases::build(c);
  engine::forward(built.problem, built.result, parallel);
  engine::backward(built.problem, built.result, built.gradients, parallel);
  std::vector<Numbers> all = {numbers(built.result.output)};
  if (built.result.lse) all.push_back(numbers(built.result.lse));
  for (const NamedView& array : arrays_of(built.gradients)) all.push_back(numbers(array.view));
  return all;
}

bool same_bits(const std::vector<Numbers>& a, const std::vector<Numbers>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Numbers& x, const Numbers& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
  });
}

std::vector<Case> some_cases() {
  const cases::Shape large{2, 4, 2, 150, 200, 16, 12};
  std::vector<Case> all;
  for (const auto& score : cases::scores()) {
    if (score.name == "kernel_silverman") continue;
    all.push_back({.score = score.name, .structure = {"causal"}, .shape = large, .dropout_p = 0.1});
  }
  for (const auto& modifier : cases::modifiers()) {
    all.push_back({.modifiers = {modifier.name}, .structure = {"window"}, .shape = large});
  }
  for (const auto& normaliser : cases::normalisers()) {
    all.push_back({.normaliser = normaliser.name, .structure = {"keep"}, .shape = large});
  }
  for (const auto& structure : cases::structures()) {
    for (const auto dtype : {engine::DType::kFloat64, engine::DType::kBFloat16}) {
      all.push_back({.normaliser = "softmax_sink",
                     .structure = {structure.name},
                     .shape = large,
                     .dtype = dtype});
    }
    all.push_back({.normaliser = "sparsemax", .structure = {structure.name}, .shape = large});
  }
  // One head, many keys: the work must be split along them.
  all.push_back({.shape = {1, 1, 1, 300, 1500, 8, 8}});
  all.push_back({.normaliser = "entmax", .shape = {1, 1, 1, 70, 1500, 8, 8}});
  return all;
}

class Threads : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(Threads, ChangeNothing) {
  for (const Case& c : some_cases()) {
    const auto alone = everything(c, threads(1));
    EXPECT_TRUE(same_bits(everything(c, threads(1)), alone)) << c.name() << ": a second run";
    EXPECT_TRUE(same_bits(everything(c, backwards()), alone)) << c.name() << ": last work first";
    for (const size_t workers : {2, 3, 8}) {
      EXPECT_TRUE(same_bits(everything(c, threads(workers)), alone))
          << c.name() << ": " << workers << " workers";
    }
  }
}

TEST_P(Threads, EveryTargetAgreesWithTheReference) {
  for (const auto& score : cases::scores()) {
    if (score.name == "kernel_silverman") continue;
    expect_agreement(
        {.score = score.name, .structure = {"causal"}, .shape = {1, 2, 1, 19, 37, 17, 9}});
  }
  for (const auto& modifier : cases::modifiers()) {
    expect_agreement(
        {.modifiers = {modifier.name}, .structure = {"keep"}, .shape = {1, 2, 1, 19, 37, 17, 9}});
  }
  for (const auto& normaliser : cases::normalisers()) {
    for (const auto dtype : {engine::DType::kFloat32, engine::DType::kFloat64}) {
      expect_agreement({.normaliser = normaliser.name,
                        .structure = {"window"},
                        .shape = {1, 2, 1, 67, 70, 9, 17},
                        .dtype = dtype});
    }
  }
}

// One of the callers has the engine's own threads, the others run alone; scratch, and what is kept
// of graphs from call to call, serve them all.
TEST(Callers, AtOnceGetWhatEachGetsAlone) {
  std::vector<Case> work;
  for (const auto& structure : cases::structures())
    work.push_back({.structure = {structure.name}, .shape = {1, 2, 1, 70, 90, 8, 8}});
  std::vector<std::vector<Numbers>> alone;
  for (const Case& c : work) alone.push_back(everything(c, threads(1)));
  std::atomic<size_t> wrong{0};
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (size_t i = 0; i < work.size(); ++i)
        wrong += !same_bits(everything(work[i], engine::default_parallel()), alone[i]);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0u);
}

INSTANTIATE_TEST_SUITE_P(Targets, Threads, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

}  // namespace
}  // namespace fovea
