#include "fovea/nn/fenchel_young.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace fovea::nn {
namespace {

// By hand: e = (1, ½, −1), y = the second class; sparsemax gives (¾, ¼, 0), so that
// L = (¾, −¾, 0)·e + (1 − 10/16) / 2 = 3/8 + 3/16.
TEST(FenchelYoung, SparsemaxLossByHand) {
  const auto scores = torch::tensor({{1.0, 0.5, -1.0}}, torch::kDouble).requires_grad_();
  const at::Tensor loss = fenchel_young_loss(scores, torch::tensor({1}));
  EXPECT_NEAR(loss.item<double>(), 0.5625, 1e-12);
  loss.sum().backward();
  const auto gradient = torch::tensor({{0.75, -0.75, 0.0}}, torch::kDouble);
  EXPECT_TRUE(torch::allclose(scores.grad(), gradient, 0, 1e-12));
}

TEST(FenchelYoung, TheGradientIsThatOfTheLoss) {
  torch::manual_seed(1);
  const at::Tensor y = torch::rand({4, 5}, torch::kDouble).softmax(-1);
  for (const Normaliser& normaliser :
       {Normaliser(Softmax{}), Normaliser(Sparsemax{}), Normaliser(Entmax{1.5})}) {
    const at::Tensor scores = torch::randn({4, 5}, torch::kDouble).requires_grad_();
    fenchel_young_loss(scores, y, normaliser).sum().backward();
    const torch::NoGradGuard no_grad;
    constexpr double kStep = 1e-5;
    for (int64_t j = 0; j < 5; ++j) {
      at::Tensor up = scores.clone(), down = scores.clone();
      up.select(1, j) += kStep;
      down.select(1, j) -= kStep;
      const at::Tensor slope =
          (fenchel_young_loss(up, y, normaliser) - fenchel_young_loss(down, y, normaliser)) /
          (2 * kStep);
      EXPECT_TRUE(torch::allclose(slope, scores.grad().select(1, j), 1e-6, 1e-6));
    }
  }
}

TEST(FenchelYoung, TheSecondDerivativeIsThatOfTheDistribution) {
  torch::manual_seed(2);
  const at::Tensor y = torch::tensor({1, 0, 4}), along = torch::randn({3, 5}, torch::kDouble);
  for (const Normaliser& normaliser :
       {Normaliser(Softmax{}), Normaliser(Sparsemax{}), Normaliser(Entmax{1.5})}) {
    const at::Tensor scores = torch::randn({3, 5}, torch::kDouble).requires_grad_();
    const auto gradient = [&](const at::Tensor& at, bool again) {
      return torch::autograd::grad({fenchel_young_loss(at, y, normaliser).sum()}, {at}, {},
                                   /*retain_graph=*/{}, again)[0];
    };
    const at::Tensor second =
        torch::autograd::grad({(gradient(scores, true) * along).sum()}, {scores})[0];
    constexpr double kStep = 1e-6;
    const auto moved = [&](double step) {
      return gradient((scores.detach() + step * along).requires_grad_(), false);
    };
    const at::Tensor slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    EXPECT_TRUE(torch::allclose(slope, second, 1e-5, 1e-6));
  }
}

TEST(FenchelYoung, RefusesWhatHasNoSuchLoss) {
  const at::Tensor scores = torch::zeros({2, 3});
  EXPECT_THROW(fenchel_young_loss(scores, torch::tensor({0, 1}), Sigmoid{}), InvalidArgument);
  EXPECT_THROW(fenchel_young_loss(scores, torch::tensor({0, 3})), InvalidArgument);
  EXPECT_THROW(fenchel_young_loss(scores, torch::tensor({0})), InvalidArgument);
}

}  // namespace
}  // namespace fovea::nn
