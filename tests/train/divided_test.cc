// The gradient of a divided batch, on one process. Several are in tests/cli/ranks_test.py.
#include "train/descent/divided.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <numeric>
#include <set>

namespace fovea::train {
namespace {

struct Net : torch::nn::Module {
  Net() {
    torch::manual_seed(5);
    first = register_module("first", torch::nn::Linear(6, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    second = register_module("second", torch::nn::Linear(16, 1));
    unused = register_parameter("unused", torch::ones({3}));
    constant = register_buffer("constant", torch::full({2}, 0.1));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return second(torch::relu(normalise ? norm(first(x)) : first(x)));
  }
  bool normalise = false;
  torch::nn::Linear first = nullptr, second = nullptr;
  torch::nn::BatchNorm1d norm = nullptr;
  torch::Tensor unused, constant;
};

struct DividedTest : testing::Test {
  DividedTest() { std::iota(items.begin(), items.end(), 0); }

  Loss loss_of(const Batch& batch) {
    seeds.push_back(batch.seed);
    const auto index = torch::tensor(std::vector<int64_t>(batch.items.begin(), batch.items.end()));
    const auto error = net.forward(x.index_select(0, index)).squeeze(1) - y.index_select(0, index);
    if (dropout) drawn.push_back(torch::rand({1}).item<float>());
    return {error.square().mean(), index.size(0)};
  }
  Loss compute(int64_t parts) {
    net.zero_grad();
    DividedGradient divided(net, net.parameters(), {.parts = parts}, nullptr);
    return divided.compute(
        {items, 99, 0}, [&](const Batch& b) { return loss_of(b); }, "step 1");
  }

  Net net;
  torch::Tensor x = torch::randn({22, 6}), y = torch::randn({22});
  std::vector<int64_t> items = std::vector<int64_t>(22);
  std::vector<uint64_t> seeds;
  std::vector<float> drawn;
  bool dropout = false;
};

TEST_F(DividedTest, IsTheGradientOfTheWhole) {
  const Loss whole = loss_of({items, 99, 0});
  whole.mean.backward();
  std::vector<torch::Tensor> expected;
  for (const auto& p : net.parameters())
    expected.push_back(p.grad().defined() ? p.grad().clone() : p.grad());
  for (const int64_t parts : {1, 2, 3, 4, 22, 30}) {
    const Loss divided = compute(parts);
    EXPECT_EQ(divided.count, 22);
    EXPECT_NEAR(divided.mean.item<double>(), whole.mean.item<double>(), 1e-6);
    for (size_t i = 0; i < expected.size(); ++i) {
      const torch::Tensor got = net.parameters()[i].grad();
      ASSERT_EQ(got.defined(), expected[i].defined()) << i;  // one without a gradient has none
      if (got.defined()) {
        EXPECT_TRUE(torch::allclose(got, expected[i], 1e-4, 1e-6)) << parts;
      }
    }
  }
}

TEST_F(DividedTest, EveryPartHasItsOwnSeed) {
  dropout = true;
  compute(4);
  ASSERT_EQ(seeds.size(), 4u);
  EXPECT_EQ(std::set<uint64_t>(seeds.begin(), seeds.end()).size(), 4u);
  EXPECT_EQ(std::set<float>(drawn.begin(), drawn.end()).size(), 4u);
  const auto before = drawn;
  drawn.clear();
  torch::rand({7});  // what was drawn before a step does not count
  compute(4);
  EXPECT_EQ(drawn, before);
}

// Ranks end a step with different parts.
TEST_F(DividedTest, WhatIsDrawnAfterAStepFollowsFromTheBatchAlone) {
  compute(4);
  const torch::Tensor after_four = torch::rand({5});
  compute(2);
  EXPECT_TRUE(torch::equal(torch::rand({5}), after_four));
}

TEST_F(DividedTest, ABufferBecomesTheMeanOverTheParts) {
  net.normalise = true;
  net.train();
  const torch::Tensor before = net.norm->running_mean.clone();
  torch::Tensor expected = torch::zeros({16}, torch::kFloat64);
  for (int64_t part = 0; part < 4; ++part) {
    const auto some = items_of_part(items, part, 4);
    loss_of({some, 0, 0});
    expected += net.norm->running_mean.to(torch::kFloat64) / 4;
    const torch::NoGradGuard guard;
    net.norm->running_mean.copy_(before);
    net.norm->num_batches_tracked.zero_();
  }
  compute(4);
  EXPECT_TRUE(torch::allclose(net.norm->running_mean.to(torch::kFloat64), expected, 1e-6, 1e-7));
  EXPECT_EQ(net.norm->num_batches_tracked.item<int64_t>(), 1);
  EXPECT_TRUE(torch::equal(net.constant, torch::full({2}, 0.1)));
}

TEST_F(DividedTest, AFailureLeavesBuffersAsTheyWere) {
  net.normalise = true;
  const torch::Tensor before = net.norm->running_mean.clone();
  DividedGradient divided(net, net.parameters(), {.parts = 4}, nullptr);
  int calls = 0;
  EXPECT_THROW(divided.compute(
                   {items, 1, 0},
                   [&](const Batch& b) {
                     Loss loss = loss_of(b);
                     if (++calls == 3) throw std::runtime_error("no");
                     return loss;
                   },
                   "step 1"),
               std::runtime_error);
  EXPECT_TRUE(torch::equal(net.norm->running_mean, before));
}

}  // namespace
}  // namespace fovea::train
