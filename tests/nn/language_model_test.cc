// Rotary positions, RMS norm, grouped heads, and the three ways to the next token: whole, with a
// cache, and in packed steps.
#include "fovea/nn/language_model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fovea/nn/language_steps.h"
#include "fovea/nn/rotary.h"
#include "tests/nn/differences.h"
#include "tests/nn/distance.h"

namespace fovea::nn {
namespace {

using test::close;

TEST(Rotary, ScoresDependOnTheDistanceOnly) {
  torch::manual_seed(1);
  const at::Tensor q = torch::randn({1, 8}, torch::kDouble),
                   k = torch::randn({1, 8}, torch::kDouble);
  const auto score = [&](int64_t i, int64_t j) {
    return (rotary(q, i) * rotary(k, j)).sum().item<double>();
  };
  for (const int64_t shift : {1, 7, 500})
    EXPECT_NEAR(score(3, 1), score(3 + shift, 1 + shift), 1e-9);
  EXPECT_GT(std::abs(score(3, 1) - score(3, 2)), 1e-6);
  EXPECT_TRUE(torch::equal(rotary(q, 0), q)) << "position 0 turns nothing";
}

TEST(Rotary, TurnsNeighbouringNumbers) {
  const at::Tensor x = torch::tensor({{1.0, 0.0, 0.0, 1.0}}, torch::kDouble);
  const at::Tensor y = rotary(x, 2);
  const double slow = 2.0 * 0.01;  // 10000^(-2/4)
  EXPECT_TRUE(close(y,
                    torch::tensor({{std::cos(2.0), std::sin(2.0), -std::sin(slow), std::cos(slow)}},
                                  torch::kDouble),
                    1e-12));
}

TEST(Rotary, AnOddWidthIsRefused) {
  EXPECT_THROW(rotary(torch::zeros({2, 3})), InvalidArgument);
  EXPECT_THROW(rotary(torch::zeros({4})), InvalidArgument);
}

TEST(RmsNorm, FollowsTheEquation) {
  torch::manual_seed(2);
  RmsNorm norm(6);
  norm->weight.data().copy_(torch::randn({6}));
  const at::Tensor x = torch::randn({3, 6});
  EXPECT_TRUE(close(norm(x), x / (x.pow(2).mean(-1, true) + 1e-5).sqrt() * norm->weight, 1e-6));
  EXPECT_TRUE(close(norm(torch::zeros({1, 6})), torch::zeros({1, 6}), 0));
}

TEST(GroupedHeads, EqualRepeatedKeyHeads) {
  torch::manual_seed(3);
  GroupedHeads grouped(GroupedHeadsOptions{.width = 16, .heads = 4, .key_heads = 2});
  GroupedHeads full(GroupedHeadsOptions{.width = 16, .heads = 4});
  const torch::NoGradGuard no_grad;
  full->wq->weight.copy_(grouped->wq->weight);
  full->wo->weight.copy_(grouped->wo->weight);
  const auto repeated = [](const at::Tensor& w) {
    return w.view({2, 4, 16}).repeat_interleave(2, 0).reshape({16, 16});
  };
  full->wk->weight.copy_(repeated(grouped->wk->weight));
  full->wv->weight.copy_(repeated(grouped->wv->weight));
  const at::Tensor x = torch::randn({2, 5, 16});
  EXPECT_TRUE(close(grouped(x), full(x), 1e-6));
}

TEST(GroupedHeads, SizesThatDoNotDivideAreRefused) {
  EXPECT_THROW(GroupedHeads(GroupedHeadsOptions{.width = 16, .heads = 3}), InvalidArgument);
  EXPECT_THROW(GroupedHeads(GroupedHeadsOptions{.width = 16, .heads = 4, .key_heads = 3}),
               InvalidArgument);
  EXPECT_THROW(GroupedHeads(GroupedHeadsOptions{.width = 12, .heads = 4}), InvalidArgument);
  EXPECT_NO_THROW(GroupedHeads(GroupedHeadsOptions{.width = 12, .heads = 4, .rotary_base = 0}));
}

std::vector<LanguageModelOptions> kinds() {
  const LanguageModelOptions base{.vocabulary = 71,
                                  .width = 24,
                                  .hidden = 37,
                                  .layers = 2,
                                  .heads = 4,
                                  .key_heads = 2,
                                  .context = 40};
  std::vector<LanguageModelOptions> out(4, base);
  out[1].norm = NormKind::kLayer;
  out[2].positions = Positions::kLearned;
  out[2].tie = false;
  out[3].key_heads = 0;
  return out;
}

TEST(LanguageModel, ACacheAndPackedStepsEqualTheWhole) {
  for (const LanguageModelOptions& options : kinds()) {
    torch::manual_seed(4);
    LanguageModel model(options);
    model->eval();
    const torch::NoGradGuard no_grad;
    for (at::Tensor& p : model->parameters()) p.normal_(0, 0.3);
    const at::Tensor tokens = torch::randint(71, {1, 33});
    const at::Tensor whole = model(tokens);
    LanguageCache cache;
    // Some at once, then one by one, then some.
    std::vector<at::Tensor> parts = {model->step(tokens.narrow(1, 0, 5), cache)};
    for (int64_t i = 5; i < 20; ++i) parts.push_back(model->step(tokens.narrow(1, i, 1), cache));
    parts.push_back(model->step(tokens.narrow(1, 20, 13), cache));
    EXPECT_TRUE(close(torch::cat(parts, 1), whole, 2e-4)) << whole.abs().max();
    LanguageSteps steps(*model);
    for (int round = 0; round < 2; ++round) {
      steps.clear();
      for (int64_t i = 0; i < tokens.size(1); ++i) {
        const auto scores = steps.step(tokens[0][i].item<int64_t>());
        ASSERT_EQ(scores.size(), 71u);
        EXPECT_TRUE(close(torch::tensor(std::vector<float>(scores.begin(), scores.end())),
                          whole[0][i], 2e-4))
            << i;
      }
    }
    EXPECT_EQ(steps.length(), 33);
  }
}

TEST(LanguageModel, ALaterTokenChangesNothingBefore) {
  torch::manual_seed(5);
  LanguageModel model(kinds()[0]);
  model->eval();
  const torch::NoGradGuard no_grad;
  at::Tensor tokens = torch::randint(71, {2, 9});
  const at::Tensor before = model(tokens);
  tokens[0][8] = (tokens[0][8] + 1) % 71;
  EXPECT_TRUE(torch::equal(model(tokens).narrow(1, 0, 8), before.narrow(1, 0, 8)));
}

TEST(LanguageModel, OneTokenAndTheEndOfTheContext) {
  LanguageModelOptions options = kinds()[0];
  options.context = 1;
  LanguageModel model(options);
  model->eval();
  const torch::NoGradGuard no_grad;
  const at::Tensor one = torch::zeros({1, 1}, torch::kLong);
  EXPECT_EQ(model(one).size(2), 71);
  EXPECT_TRUE(torch::equal(model->weights(one).flatten(), torch::ones({8}))) << "one key: weight 1";
  EXPECT_THROW(model(torch::zeros({1, 2}, torch::kLong)), InvalidArgument);
  LanguageSteps steps(*model);
  EXPECT_THROW(steps.step(71), InvalidArgument);
  EXPECT_THROW(steps.step(-1), InvalidArgument);
  steps.step(0);
  EXPECT_THROW(steps.step(0), InvalidArgument) << "the context is full";
  model->to(torch::kDouble);
  EXPECT_THROW(LanguageSteps{*model}, InvalidArgument);
}

TEST(LanguageModel, GradientsAgreeWithFiniteDifferences) {
  LanguageModelOptions options{.vocabulary = 7,
                               .width = 8,
                               .hidden = 6,
                               .layers = 1,
                               .heads = 2,
                               .key_heads = 1,
                               .context = 5};
  torch::manual_seed(6);
  LanguageModel model(options);
  model->to(torch::kDouble);
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& p : model->parameters()) p.normal_(0, 0.5);
  }
  const at::Tensor tokens = torch::randint(7, {2, 5}),
                   cotangent = torch::randn({2, 5, 7}, torch::kDouble);
  const auto value = [&] { return (model(tokens) * cotangent).sum(); };
  test::expect_gradients_of_differences(value, *model, {.each = 5});
}

}  // namespace
}  // namespace fovea::nn
