// The reference against values worked by hand, and its gradients against central differences of its
// own outputs.
#include "engine/reference/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cases/cases.h"
#include "tests/engine/bounds.h"
#include "tests/engine/differences.h"

namespace fovea {
namespace {

using cases::Storage;
using engine::DType;

// Weights of one row of given scores.
std::vector<double> weights_of(const std::vector<double>& scores, engine::Normaliser normaliser) {
  Storage storage(1);
  engine::Problem problem;
  const auto n = static_cast<int64_t>(scores.size());
  const engine::View row = storage.values(DType::kFloat64, scores);
  problem.query = engine::View::of(row.data, DType::kFloat64, {1, 1, 1, n});
  problem.key = storage.zeros(DType::kFloat64, {1, 1, n, 1});
  problem.value = storage.zeros(DType::kFloat64, {1, 1, n, 1});
  problem.score = engine::Location{};
  problem.normaliser = normaliser;
  return reference::forward<double>(problem).rows.at(0).weights;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t n = 0; n < got.size(); ++n)
    expect_close(got[n], expected[n], tolerance, "element " + std::to_string(n));
}

TEST(Reference, WeighsTheWorkedExamples) {
  expect_near(weights_of({1, 0.5, -1}, engine::Softmax{}), {0.5741, 0.3482, 0.0777}, 5e-5);
  expect_near(weights_of({1, 0.5, -1}, engine::Entmax{}), {0.6740, 0.3260, 0}, 5e-5);
  expect_near(weights_of({1, 0.5, -1}, engine::Sparsemax{}), {0.75, 0.25, 0}, 1e-15);
  expect_near(weights_of({1, 0.5, -1}, engine::Entmax{.alpha = 2, .alpha_tensor = {}}),
              {0.75, 0.25, 0}, 1e-12);
  expect_near(weights_of({2, 0}, engine::Entmax{}), {1, 0}, 0);
  expect_near(weights_of({2, 0}, engine::Sparsemax{}), {1, 0}, 0);
  expect_near(weights_of({14, 12}, engine::Softmax{}), {0.8808, 0.1192}, 5e-5);
  expect_near(weights_of({112, 96}, engine::Softmax{}), {1 - 1.1254e-7, 1.1254e-7}, 1e-11);
  expect_near(weights_of({1, 3}, engine::KernelRatio{}), {0.25, 0.75}, 0);
  expect_near(weights_of({2, 2, 2}, engine::TopK{2}), {0.5, 0.5, 0}, 0);
  expect_near(weights_of({1, 5, 5}, engine::Hard{}), {0, 1, 0}, 0);
  expect_near(weights_of({1, 5, 5, 0}, engine::Uniform{}), {0.25, 0.25, 0.25, 0.25}, 0);
  expect_near(weights_of({0, std::log(3.0)}, engine::Sigmoid{}), {0.5, 0.75}, 1e-15);
}

TEST(Reference, EveryGradientAgreesWithCentralDifferences) {
  for (const auto& score : cases::scores()) {
    for (const auto& normaliser : cases::normalisers()) {
      if (score.name == "kernel_silverman" && normaliser.name != "kernel_ratio" &&
          normaliser.name != "unnormalised") {
        continue;  // it has no logarithm
      }
      expect_gradients_of_reference({.score = score.name,
                                     .normaliser = normaliser.name,
                                     .structure = {"keep"},
                                     .shape = {1, 2, 1, 3, 5, 4, 3},
                                     .dtype = DType::kFloat64});
    }
  }
  for (const auto& modifier : cases::modifiers()) {
    for (const char* normaliser : {"softmax", "sparsemax", "unnormalised"}) {
      expect_gradients_of_reference({.modifiers = {modifier.name},
                                     .normaliser = normaliser,
                                     .structure = {"causal"},
                                     .shape = {2, 2, 2, 3, 4, 3, 2},
                                     .dtype = DType::kFloat64,
                                     .dropout_p = 0.3});
    }
  }
  for (const auto& structure : cases::structures()) {
    expect_gradients_of_reference({.structure = {structure.name},
                                   .shape = {3, 2, 1, 4, 5, 3, 2},
                                   .dtype = DType::kFloat64,
                                   .key_lengths = true});
  }
}

}  // namespace
}  // namespace fovea
