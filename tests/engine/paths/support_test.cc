// Gradients of threshold normalisers by the pairs that have weight, against the reference.
#include <gtest/gtest.h>

#include "cases/cases.h"
#include "engine/reference/reference.h"
#include "engine/call/view.h"
#include "tests/engine/comparison.h"
#include "tests/engine/run.h"
#include "tests/engine/arrays.h"

namespace fovea {
namespace {

using engine::DType;

// Enough heads and few weights: backward goes by the pairs that have weight.
class SupportOf : public testing::TestWithParam<const char*> {};

TEST_P(SupportOf, GivesTheGradients) {
  for (const auto& structure :
       std::vector<std::vector<std::string>>{{"dense"}, {"causal"}, {"ragged"}, {"keep"}}) {
    for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kBFloat16}) {
      expect_agreement(
          {.normaliser = GetParam(),
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
           .content = dtype == DType::kFloat64 ? cases::Content::kLarge : cases::Content::kPoison});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Normalisers, SupportOf,
                         testing::Values("sparsemax", "entmax", "entmax_alpha", "top_k"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Support, GivesTheSameBitsForAnyNumberOfWorkers) {
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

// Every key twice: of two equal scores at the edge the first is chosen, forward and backward.
TEST(Support, EqualScoresAtTheEdgeOfASupport) {
  cases::Built built = cases::build({.normaliser = "top_k",
                                     .shape = {.heads = 4,
                                               .key_heads = 4,
                                               .queries = 40,
                                               .keys = 500,
                                               .width = 16,
                                               .value_width = 16}});
  const engine::View& key = built.problem.key;
  for (int64_t h = 0; h < 4; ++h)
    for (int64_t j = 0; j < 500; j += 2)
      for (int64_t e = 0; e < 16; ++e)
        engine::element<float>(key, 0, h, j + 1, e) = engine::element<float>(key, 0, h, j, e);
  std::get<engine::TopK>(built.problem.normaliser).k = 7;
  expect_agreement(built, threads(2));
}

}  // namespace
}  // namespace fovea
