// Optimisers against libtorch's, and the schedules of their rate.
#include "train/descent/optimiser.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/engine/bounds.h"
#include "train/descent/recipe.h"

namespace fovea {
namespace {

TEST(Optimisers, EqualLibtorchs) {
  for (const std::string name : {"sgd", "adam", "adamw", "adagrad", "rmsprop"}) {
    torch::manual_seed(3);
    const torch::Tensor start = torch::randn({7, 5}, torch::kFloat64),
                        target = torch::randn({7, 5}, torch::kFloat64);
    torch::Tensor ours = start.clone().requires_grad_(), theirs = start.clone().requires_grad_();
    train::Recipe recipe{.optimiser = name,
                         .rate = 0.05,
                         .momentum = name == "sgd" ? 0.9 : 0.0,
                         .beta2 = name == "rmsprop" ? 0.99 : 0.999,
                         .weight_decay = name == "rmsprop" ? 0.0 : 0.01};
    train::Optimiser optimiser({{.parameters = {ours}}}, recipe);
    std::unique_ptr<torch::optim::Optimizer> peer;
    const std::vector<torch::Tensor> parameters{theirs};
    if (name == "sgd")
      peer = std::make_unique<torch::optim::SGD>(
          parameters, torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.01));
    if (name == "adam")
      peer = std::make_unique<torch::optim::Adam>(
          parameters, torch::optim::AdamOptions(0.05).weight_decay(0.01));
    if (name == "adamw")
      peer = std::make_unique<torch::optim::AdamW>(
          parameters, torch::optim::AdamWOptions(0.05).weight_decay(0.01));
    if (name == "adagrad")
      peer = std::make_unique<torch::optim::Adagrad>(
          parameters, torch::optim::AdagradOptions(0.05).weight_decay(0.01).eps(1e-8));
    if (name == "rmsprop")
      peer =
          std::make_unique<torch::optim::RMSprop>(parameters, torch::optim::RMSpropOptions(0.05));
    for (int step = 0; step < 20; ++step) {
      optimiser.zero_grad();
      (ours - target).square().sum().backward();
      optimiser.step(1);
      peer->zero_grad();
      (theirs - target).square().sum().backward();
      peer->step();
    }
    EXPECT_LT((ours - theirs).abs().max().item<double>(), 1e-12) << name;
    EXPECT_GT((ours - start).abs().max().item<double>(), 0.05) << name;
  }
}

TEST(Optimisers, ClippingScalesTheWholeGradient) {
  torch::Tensor a = torch::ones({3}, torch::kFloat64).requires_grad_(),
                b = torch::ones({4}, torch::kFloat64).requires_grad_();
  train::Optimiser optimiser({{.parameters = {a, b}}}, {});
  (a.sum() * 3 + b.sum() * 4).backward();
  const double norm = std::sqrt(3 * 9.0 + 4 * 16.0);
  expect_close(optimiser.clip(1.0).item<double>(), norm, bounds::rounded(norm, bounds::kDoubleUlp));
  EXPECT_NEAR(a.grad()[0].item<double>(), 3 / norm, 1e-6);
  EXPECT_NEAR(optimiser.clip(5.0).item<double>(), 1.0, 1e-5);
  EXPECT_NEAR(b.grad()[0].item<double>(), 4 / norm, 1e-6);
}

TEST(Schedules, FollowTheirFormulas) {
  using train::rate_factor;
  const double kClose = bounds::rounded(1, bounds::kDoubleUlp);
  const train::Recipe noam{.schedule = "inverse_sqrt", .warmup = 100};
  expect_close(rate_factor(noam, 50, 0, 1000), 0.5, kClose);
  expect_close(rate_factor(noam, 100, 0, 1000), 1.0, kClose);
  expect_close(rate_factor(noam, 400, 0, 1000), 0.5, kClose);
  const train::Recipe luong{.schedule = "step", .decay = 0.5, .decay_every = 1, .decay_from = 5};
  EXPECT_EQ(rate_factor(luong, 1, 4, 10), 1.0);
  EXPECT_EQ(rate_factor(luong, 1, 5, 10), 0.5);
  EXPECT_EQ(rate_factor(luong, 1, 7, 10), 0.125);
  const train::Recipe memory{.schedule = "step", .decay = 0.5, .decay_every = 25};
  EXPECT_EQ(rate_factor(memory, 1, 24, 10), 1.0);
  EXPECT_EQ(rate_factor(memory, 1, 50, 10), 0.25);
  const train::Recipe cosine{.schedule = "cosine", .warmup = 10};
  expect_close(rate_factor(cosine, 5, 0, 110), 0.5, kClose);
  expect_close(rate_factor(cosine, 60, 0, 110), 0.5, kClose);
  expect_close(rate_factor(cosine, 110, 0, 110), 0.0, kClose);
  const train::Recipe linear{.schedule = "linear", .warmup = 0};
  expect_close(rate_factor(linear, 25, 0, 100), 0.75, kClose);
  const train::Recipe exponential{.schedule = "exponential", .decay = 0.99};
  expect_close(rate_factor(exponential, 1, 2, 100), 0.9801, kClose);
}

}  // namespace
}  // namespace fovea
