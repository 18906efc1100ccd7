// The mixture of experts against the dense sum and against loops, its gradients against differences,
// and its corners: ties, one expert, capacity, no tokens.
#include "fovea/nn/mixture_of_experts.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/nn/differences.h"

namespace fovea::nn {
namespace {

// Scores that are not all alike: as it starts, every gate is zero.
MixtureOfExperts made(MixtureOfExpertsOptions options, uint64_t seed = 1) {
  torch::manual_seed(seed);
  MixtureOfExperts module(options);
  module->to(torch::kFloat64);
  const at::NoGradGuard no_grad;
  module->gate_weight.normal_();
  if (module->noise_weight.defined()) module->noise_weight.normal_(0, 0.5);
  return module;
}

at::Tensor tokens(int64_t count, int64_t width) {
  return torch::randn({count, width}, torch::kFloat64);
}

at::Tensor answer(MixtureOfExpertsImpl& m, int64_t expert, const at::Tensor& x) {
  return m.experts->at<torch::nn::SequentialImpl>(static_cast<size_t>(expert)).forward(x);
}

// Σ_i g_i E_i(x) with every expert computed, g zero outside `k` largest.
at::Tensor masked(MixtureOfExpertsImpl& m, const at::Tensor& x) {
  const auto [best, where] = m.scores(x).topk(m.options().k, 1);
  const at::Tensor g =
      at::zeros({x.size(0), m.options().experts}, x.options()).scatter(1, where, best.softmax(1));
  at::Tensor out = at::zeros({x.size(0), m.options().output}, x.options());
  for (int64_t i = 0; i < m.options().experts; ++i) out = out + g.narrow(1, i, 1) * answer(m, i, x);
  return out;
}

TEST(MixtureOfExperts, WithAllExpertsAndNoNoiseIsTheDenseMixture) {
  MixtureOfExperts module = made({.width = 5, .output = 3, .hidden = 7, .experts = 4, .k = 4});
  module->eval();
  const at::Tensor x = tokens(9, 5), g = module->scores(x).softmax(1);
  at::Tensor dense = torch::zeros({9, 3}, torch::kFloat64);
  for (int64_t i = 0; i < 4; ++i) dense = dense + g.narrow(1, i, 1) * answer(*module, i, x);
  EXPECT_TRUE(at::allclose(module(x), dense, 1e-12, 1e-12));
}

TEST(MixtureOfExperts, SparseDispatchEqualsComputingAllAndMasking) {
  for (const int64_t k : {2, 3}) {
    MixtureOfExperts module = made({.width = 6, .hidden = 5, .experts = 8, .k = k});
    module->eval();
    const at::Tensor x = tokens(40, 6).view({5, 8, 6});
    const at::Tensor out = module(x);
    EXPECT_EQ(out.sizes(), x.sizes());
    EXPECT_TRUE(at::allclose(out.view({40, 6}), masked(*module, x.view({40, 6})), 1e-12, 1e-12));
    const Mixed& told = module->last();
    EXPECT_EQ(told.load.sum().item<int64_t>(), 40 * k);
    EXPECT_TRUE(at::allclose(told.gates.sum(1), torch::ones({40}, torch::kFloat64)));
    // What the rows of the graph list are the answers of the experts chosen, in their order.
    const at::Tensor row = told.answers_of.columns.view({40, k})[3].to(torch::kLong);
    for (int64_t j = 0; j < k; ++j)
      EXPECT_TRUE(at::allclose(
          told.answers[row[j].item<int64_t>()],
          answer(*module, told.chosen[3][j].item<int64_t>(), x.view({40, 6}).narrow(0, 3, 1))[0],
          1e-12, 1e-12));
  }
}

TEST(MixtureOfExperts, AnUnchosenExpertHasNoGradient) {
  MixtureOfExperts module = made({.width = 4, .hidden = 3, .experts = 6, .k = 2, .noise = false});
  const at::Tensor x = tokens(1, 4);
  module(x).square().sum().backward();
  const at::Tensor chosen = module->last().chosen[0];
  for (int64_t i = 0; i < 6; ++i) {
    const bool asked = (chosen == i).any().item<bool>();
    for (const at::Tensor& p : module->experts[static_cast<size_t>(i)]->parameters())
      EXPECT_EQ(p.grad().defined() && p.grad().abs().max().item<double>() > 0, asked) << i;
    EXPECT_EQ(module->gate_weight.grad().select(1, i).abs().max().item<double>() > 0, asked) << i;
  }
}

// The same noise each time: libtorch's generator is set before.
void check_gradients(MixtureOfExperts& module, const at::Tensor& input) {
  at::Tensor x = input.clone().requires_grad_();
  const at::Tensor weigh = torch::randn({x.size(0), module->options().output}, torch::kFloat64);
  const auto loss = [&] {
    torch::manual_seed(11);
    const Mixed mixed = module->mix(x);
    return (mixed.output * weigh).sum() + 0.7 * mixed.importance_loss + 0.3 * mixed.load_loss;
  };
  std::vector<at::Tensor> all = module->parameters();
  all.push_back(x);
  test::expect_gradients_of_differences(loss, all);
}

TEST(MixtureOfExperts, GradientsAreThoseOfDifferences) {
  for (const int64_t k : {1, 2, 4}) {
    MixtureOfExperts module = made({.width = 3, .output = 2, .hidden = 2, .experts = 4, .k = k}, 5);
    check_gradients(module, tokens(6, 3));
  }
}

TEST(MixtureOfExperts, GradientsUnderACapacityAreThoseOfDifferences) {
  for (const int64_t k : {1, 2}) {
    MixtureOfExperts module =
        made({.width = 3, .hidden = 2, .experts = 4, .k = k, .capacity = 0.6}, 6);
    check_gradients(module, tokens(7, 3));
    torch::manual_seed(11);
    EXPECT_GT(module->mix(tokens(7, 3)).overflow, 0);
  }
}

TEST(MixtureOfExperts, OneExpertEachIsWeighedByTheFullSoftmaxSoTheGateLearns) {
  MixtureOfExperts module = made({.width = 4, .hidden = 3, .experts = 5, .k = 1, .noise = false});
  const at::Tensor x = tokens(6, 4), p = module->scores(x).softmax(1);
  const at::Tensor out = module(x);
  for (int64_t t = 0; t < 6; ++t) {
    const int64_t best = p[t].argmax().item<int64_t>();
    EXPECT_TRUE(at::allclose(out[t], p[t][best] * answer(*module, best, x.narrow(0, t, 1))[0],
                             1e-12, 1e-12));
  }
  out.sum().backward();
  EXPECT_GT(module->gate_weight.grad().abs().max().item<double>(), 0);
}

TEST(MixtureOfExperts, ASingleExpertIsThatExpertAndInBalance) {
  MixtureOfExperts module = made({.width = 4, .hidden = 3, .experts = 1, .k = 1});
  const at::Tensor x = tokens(5, 4);
  EXPECT_TRUE(at::allclose(module(x), answer(*module, 0, x), 1e-12, 1e-12));
  EXPECT_EQ(module->last().importance_loss.item<double>(), 0);
  EXPECT_EQ(module->last().load_loss.item<double>(), 0);
}

TEST(MixtureOfExperts, TiesGoToTheLowerExpertAndNoiseBreaksThem) {
  torch::manual_seed(2);
  MixtureOfExperts module(MixtureOfExpertsOptions{.width = 4, .experts = 8, .k = 2});
  const at::Tensor x = torch::randn({400, 4});
  module->eval();
  EXPECT_TRUE(
      at::equal(module->mix(x).load, torch::tensor({400, 400, 0, 0, 0, 0, 0, 0}, torch::kLong)));
  module->train();
  EXPECT_GT(module->mix(x).load.min().item<int64_t>(), 50);
  // Without noise nothing would break them: the gate begins at random instead.
  MixtureOfExperts quiet(MixtureOfExpertsOptions{.width = 4, .experts = 8, .k = 2, .noise = false});
  EXPECT_GT((quiet->mix(x).load > 0).sum().item<int64_t>(), 4);
}

TEST(MixtureOfExperts, NoiseIsOffAtEvaluation) {
  MixtureOfExperts module = made({.width = 4, .hidden = 3, .experts = 6, .k = 2});
  const at::Tensor x = tokens(20, 4);
  EXPECT_FALSE(at::equal(module(x), module(x)));
  module->eval();
  EXPECT_TRUE(at::equal(module(x), module(x)));
}

// P(x, i) = Φ((clean_i - k-th largest of the others' H) / deviation), summed over x.
TEST(MixtureOfExperts, BalanceLossesEqualALoop) {
  const int64_t k = 2, experts = 5, count = 6;
  MixtureOfExperts module = made({.width = 3, .hidden = 2, .experts = experts, .k = k}, 3);
  const at::Tensor x = tokens(count, 3);
  torch::manual_seed(21);
  const Mixed mixed = module->mix(x);
  torch::manual_seed(21);
  const at::Tensor clean = module->scores(x),
                   deviation = at::softplus(x.matmul(module->noise_weight));
  const at::Tensor noisy = clean + torch::randn_like(clean) * deviation;
  std::vector<double> load(experts), importance(experts);
  for (int64_t t = 0; t < count; ++t)
    for (int64_t i = 0; i < experts; ++i) {
      std::vector<double> others;
      double above = 0;
      for (int64_t j = 0; j < experts; ++j) {
        if (j != i) others.push_back(noisy[t][j].item<double>());
        above += noisy[t][j].item<double>() > noisy[t][i].item<double>();
      }
      std::sort(others.rbegin(), others.rend());
      const double z =
          (clean[t][i].item<double>() - others[k - 1]) / deviation[t][i].item<double>();
      load[static_cast<size_t>(i)] += 0.5 * std::erfc(-z / std::sqrt(2.0));
      if (above >= k) continue;
      double sum = 0;  // over the k largest
      for (int64_t j = 0; j < experts; ++j)
        if (noisy[t][j].item<double>() >= std::min(others[k - 1], noisy[t][i].item<double>()) &&
            (mixed.chosen[t] == j).any().item<bool>())
          sum += std::exp(noisy[t][j].item<double>());
      importance[static_cast<size_t>(i)] += std::exp(noisy[t][i].item<double>()) / sum;
    }
  const auto cv2 = [](const std::vector<double>& v) {
    double mean = 0, variance = 0;
    for (const double one : v) mean += one / static_cast<double>(v.size());
    for (const double one : v)
      variance += (one - mean) * (one - mean) / static_cast<double>(v.size());
    return variance / mean / mean;
  };
  EXPECT_NEAR(mixed.load_loss.item<double>(), cv2(load), 1e-10);
  EXPECT_NEAR(mixed.importance_loss.item<double>(), cv2(importance), 1e-10);
}

TEST(MixtureOfExperts, AllExpertsChosenAreAlwaysInBalanceOfLoad) {
  MixtureOfExperts module = made({.width = 3, .hidden = 2, .experts = 3, .k = 3});
  EXPECT_EQ(module->mix(tokens(5, 3)).load_loss.item<double>(), 0);
}

// Every token wants experts 0 and 1; each has room for ⌈0.5 · 2 · 8 / 4⌉ = 2: the first two tokens.
TEST(MixtureOfExperts, BeyondTheCapacityTokensPassInTheirOrder) {
  MixtureOfExperts module =
      made({.width = 3, .hidden = 2, .experts = 4, .k = 2, .noise = false, .capacity = 0.5});
  {
    const at::NoGradGuard no_grad;
    module->gate_weight.zero_();
  }
  const at::Tensor x = tokens(8, 3);
  const Mixed mixed = module->mix(x);
  EXPECT_EQ(mixed.overflow, 12);
  for (int64_t t = 0; t < 8; ++t) {
    const at::Tensor one = x.narrow(0, t, 1);
    const at::Tensor expected =
        t < 2 ? 0.5 * (answer(*module, 0, one) + answer(*module, 1, one))[0] : x[t];
    EXPECT_TRUE(at::allclose(mixed.output[t], expected, 1e-12, 1e-12)) << t;
  }
}

TEST(MixtureOfExperts, WithoutAnyCapacityTokensLeaveAsTheyCame) {
  for (const int64_t k : {1, 2}) {
    MixtureOfExperts module =
        made({.width = 3, .hidden = 2, .experts = 4, .k = k, .capacity = 0.0});
    const at::Tensor x = tokens(5, 3);
    EXPECT_TRUE(at::allclose(module(x), x, 1e-12, 1e-12));
    EXPECT_EQ(module->last().overflow, 5 * k);
    MixtureOfExperts wider = made({.width = 3, .output = 2, .experts = 4, .k = k, .capacity = 0.0});
    EXPECT_EQ(wider(x).abs().max().item<double>(), 0) << "answers of another width: nothing";
  }
}

TEST(MixtureOfExperts, TakesNoTokens) {
  MixtureOfExperts module = made({.width = 3, .output = 2, .experts = 4, .k = 2, .capacity = 1.0});
  EXPECT_EQ(module(torch::zeros({0, 3}, torch::kFloat64)).sizes(), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(module->last().importance_loss.item<double>(), 0);
}

TEST(MixtureOfExperts, TheGateMayLookElsewhere) {
  MixtureOfExperts module = made({.width = 3, .gate_width = 2, .experts = 4, .k = 2});
  module->eval();
  const at::Tensor x = tokens(5, 3), place = tokens(5, 2);
  EXPECT_EQ(module(x, place).sizes(), x.sizes());
  EXPECT_TRUE(at::equal(module->last().chosen.select(1, 0), module->scores(place).argmax(1)));
  EXPECT_THROW(module(x), InvalidArgument);
  EXPECT_THROW(module(x, tokens(4, 2)), InvalidArgument);
}

// y = Σ_a Σ_b g_a g_ab E_ab(x)
TEST(MixtureOfExperts, AnExpertThatIsAMixtureMakesTwoLevels) {
  MixtureOfExperts module =
      made({.width = 4, .experts = 3, .k = 2, .expert = [] {
              return torch::nn::Sequential(made({.width = 4, .hidden = 2, .experts = 3, .k = 2}));
            }});
  module->eval();
  const at::Tensor x = tokens(1, 4);
  const Mixed outer = module->mix(x);
  at::Tensor expected = torch::zeros({4}, torch::kFloat64);
  double importance = 0;
  for (int64_t a = 0; a < 2; ++a) {
    const auto group = static_cast<size_t>(outer.chosen[0][a].item<int64_t>());
    auto& inner =
        *module->experts->at<torch::nn::SequentialImpl>(group).ptr<MixtureOfExpertsImpl>(0);
    expected = expected + outer.gates[0][a] * masked(inner, x)[0];
    importance += inner.last().importance_loss.item<double>();
  }
  EXPECT_TRUE(at::allclose(outer.output[0], expected, 1e-12, 1e-12));
  EXPECT_GT(outer.importance_loss.item<double>(), importance);
}

TEST(MixtureOfExperts, NamesWhatItRefuses) {
  const auto error = [](const MixtureOfExpertsOptions& options) {
    try {
      MixtureOfExperts module(options);
    } catch (const InvalidArgument& refused) {
      return std::string(refused.what());
    }
    return std::string();
  };
  EXPECT_EQ(error({.width = 4, .experts = 3, .k = 4}), "k: 4, expected 1 to 3 (the experts)");
  EXPECT_EQ(error({.width = 4, .experts = 3, .k = 0}), "k: 0, expected 1 to 3 (the experts)");
  EXPECT_EQ(error({.width = 4, .experts = 0}), "experts: 0, expected at least 1");
  EXPECT_EQ(error({.width = 0}), "width: 0, expected at least 1");
  EXPECT_NE(error({.width = 4, .capacity = -1.0}).find("capacity: -1"), std::string::npos);
  MixtureOfExperts module(MixtureOfExpertsOptions{.width = 4});
  EXPECT_THROW(module(torch::zeros({2, 5})), InvalidArgument);
  const at::Tensor bad = torch::full({2, 4}, std::nan(""));
  EXPECT_THROW(module(bad), InvalidArgument);
}

}  // namespace
}  // namespace fovea::nn
