// Squeeze-and-excitation against its formula, its gradient against differences, and what it refuses.
#include "fovea/nn/squeeze_excite.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fovea/error.h"
#include "tests/nn/differences.h"

namespace fovea::nn {
namespace {

at::Tensor by_formula(SqueezeExciteImpl& m, const at::Tensor& u) {
  const at::Tensor z = u.mean(at::IntArrayRef{2, 3});
  const at::Tensor s = (z.matmul(m.fc1->weight.t()).relu().matmul(m.fc2->weight.t())).sigmoid();
  return u * s.unsqueeze(2).unsqueeze(3);
}

TEST(SqueezeExcite, EqualsItsFormula) {
  torch::manual_seed(1);
  for (const int64_t channels : {1, 5, 32}) {
    SqueezeExcite module(SqueezeExciteOptions{.channels = channels, .reduction = 4});
    const at::Tensor u = torch::randn({3, channels, 7, 4});
    EXPECT_TRUE(at::allclose(module(u), by_formula(*module, u), 1e-5, 1e-6)) << channels;
    EXPECT_TRUE(at::allclose(module->gates(u), module->scores(u).sigmoid()));
  }
}

TEST(SqueezeExcite, TakesMapsOfOneAndOfThreeDimensionsAndNoItems) {
  torch::manual_seed(2);
  SqueezeExcite module(SqueezeExciteOptions{.channels = 6, .reduction = 2});
  const at::Tensor u = torch::randn({2, 6, 12});
  EXPECT_TRUE(at::allclose(module(u), module(u.view({2, 6, 3, 4})).flatten(2)));
  EXPECT_TRUE(at::allclose(module(u), module(u.view({2, 6, 3, 2, 2})).flatten(2)));
  EXPECT_EQ(module(torch::randn({0, 6, 12})).sizes(), (std::vector<int64_t>{0, 6, 12}));
}

TEST(SqueezeExcite, HasAtLeastOneUnitBetweenAndBeginsNearOneHalf) {
  torch::manual_seed(3);
  SqueezeExcite module(SqueezeExciteOptions{.channels = 8, .reduction = 16});
  EXPECT_EQ(module->fc1->weight.size(0), 1);
  const at::Tensor gates = module->gates(torch::randn({4, 8, 5, 5}));
  EXPECT_LT((gates - 0.5).abs().max().item<double>(), 0.1);
}

TEST(SqueezeExcite, GradientsAreThoseOfDifferences) {
  torch::manual_seed(4);
  SqueezeExcite module(SqueezeExciteOptions{.channels = 4, .reduction = 2});
  module->to(torch::kFloat64);
  at::Tensor u = torch::randn({2, 4, 3, 2}, torch::kFloat64).requires_grad_();
  const at::Tensor weigh = torch::randn({2, 4, 3, 2}, torch::kFloat64);
  const auto loss = [&] { return (module(u) * weigh).sum(); };
  test::expect_gradients_of_differences(loss, {u, module->fc1->weight, module->fc2->weight});
}

TEST(SqueezeExcite, GatesMapsOfAnotherSize) {
  torch::manual_seed(5);
  SqueezeExcite module(SqueezeExciteOptions{.channels = 3, .reduction = 1});
  const at::Tensor u = torch::randn({2, 3, 4, 6}), scores = module->scores(u);
  EXPECT_TRUE(at::equal(module(u), SqueezeExciteImpl::gated(u, scores)));
  const at::Tensor first = SqueezeExciteImpl::gated(torch::max_pool2d(u, 2), scores),
                   after = torch::max_pool2d(module(u), 2);
  EXPECT_TRUE(at::allclose(first, after, 1e-5, 1e-7));
  try {
    SqueezeExciteImpl::gated(u, scores.narrow(1, 0, 2));
    ADD_FAILURE() << "two gates for three channels were taken";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()),
              "maps: [2, 3, 4, 6], expected [2, 2] (scores), then the size of a map");
  }
}

TEST(SqueezeExcite, RefusesOtherShapes) {
  EXPECT_THROW(SqueezeExcite(SqueezeExciteOptions{.channels = 0}), InvalidArgument);
  EXPECT_THROW(SqueezeExcite(SqueezeExciteOptions{.channels = 4, .reduction = 0}), InvalidArgument);
  SqueezeExcite module(SqueezeExciteOptions{.channels = 4});
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 5, 3, 3}, {2, 4}, {4}}) {
    try {
      module(torch::zeros(shape));
      ADD_FAILURE() << shape.size() << " dimensions were taken";
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("expected [batch, 4, ...]"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace fovea::nn
