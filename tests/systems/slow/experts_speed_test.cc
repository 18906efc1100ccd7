// What sparse dispatch costs beside one expert and beside all of them, and gates beside eager libtorch:
// forward and backward, in turns.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdio>

#include "fovea/nn/mixture_of_experts.h"
#include "systems/squeeze_excitation/model.h"
#include "tests/systems/slow/in_turns.h"

namespace fovea::systems {
namespace {

using fovea::test::medians;

constexpr int64_t kExperts = 64, kTokens = 4096, kTokenWidth = 256, kExpertWidth = 1024;

TEST(ExpertsSpeed, TwoOfSixtyFourCostAboutWhatTwoCost) {
  torch::manual_seed(1);
  nn::MixtureOfExperts sparse(nn::MixtureOfExpertsOptions{
      .width = kTokenWidth, .hidden = kExpertWidth, .experts = kExperts, .k = 2});
  nn::MixtureOfExperts one(nn::MixtureOfExpertsOptions{
      .width = kTokenWidth, .hidden = kExpertWidth, .experts = 1, .k = 1});
  auto& expert = one->experts->at<torch::nn::SequentialImpl>(0);
  const torch::Tensor x = torch::randn({kTokens, kTokenWidth}), twice = torch::cat({x, x});
  const std::vector<double> taken = medians(
      {[&] { return sparse(x); }, [&] { return expert.forward(twice); },
       // Every expert answers every token, and weights of which all but two are zero mix them.
       [&] {
         const torch::Tensor scores = sparse->scores(x);
         const auto [best, where] = scores.topk(2, 1);
         const torch::Tensor g = torch::zeros_like(scores).scatter(1, where, best.softmax(1));
         torch::Tensor out = torch::zeros({kTokens, kTokenWidth});
         for (int64_t i = 0; i < kExperts; ++i)
           out = out + g.narrow(1, i, 1) *
                           sparse->experts->at<torch::nn::SequentialImpl>(static_cast<size_t>(i))
                               .forward(x);
         return out;
       },
       // The experts called one after another, each with its tokens: what one writes in eager libtorch.
       [&] {
         const torch::Tensor clean = sparse->scores(x);
         const torch::Tensor deviation = torch::softplus(x.matmul(sparse->noise_weight));
         const auto [best, where] = (clean + torch::randn_like(clean) * deviation).topk(2, 1);
         const torch::Tensor g = best.softmax(1);
         torch::Tensor out = torch::zeros({kTokens, kTokenWidth});
         for (int64_t i = 0; i < kExperts; ++i) {
           const std::vector<torch::Tensor> at = (where == i).nonzero().unbind(1);
           if (at[0].numel() == 0) continue;
           auto& asked = sparse->experts->at<torch::nn::SequentialImpl>(static_cast<size_t>(i));
           out = out.index_add(
               0, at[0],
               g.index({at[0], at[1]}).unsqueeze(1) * asked.forward(x.index_select(0, at[0])));
         }
         return out;
       }},
      3);
  std::printf(
      "64 experts, k = 2, %lld tokens of %lld, hidden %lld: %.2f x one expert on the tokens "
      "twice; all 64 and masking take %.1f x as long, eager dispatch %.2f x; %d threads\n",
      static_cast<long long>(kTokens), static_cast<long long>(kTokenWidth),
      static_cast<long long>(kExpertWidth), taken[0] / taken[1], taken[2] / taken[0],
      taken[3] / taken[0], at::get_num_threads());
  EXPECT_LE(taken[0] / taken[1], 2.5);
  EXPECT_GE(taken[2] / taken[0], 8);
  EXPECT_GE(taken[3] / taken[0], 1.0);
}

// The same network with gates written out.
struct Eager : torch::nn::Module {
  explicit Eager(int64_t channels) {
    for (int layer = 0; layer < 4; ++layer) {
      const std::string number = std::to_string(layer);
      conv.push_back(register_module(
          "conv" + number,
          torch::nn::Conv2d(
              torch::nn::Conv2dOptions(layer ? channels : 1, channels, 3).padding(1).bias(false))));
      norm.push_back(register_module("norm" + number, torch::nn::BatchNorm2d(channels)));
      using torch::nn::LinearOptions;
      down.push_back(register_module(
          "down" + number, torch::nn::Linear(LinearOptions(channels, channels / 4).bias(false))));
      up.push_back(register_module(
          "up" + number, torch::nn::Linear(LinearOptions(channels / 4, channels).bias(false))));
    }
    out = register_module("out", torch::nn::Linear(channels * 7 * 7, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (size_t i = 0; i < 4; ++i) {
      x = torch::relu(norm[i](conv[i](x)));
      const torch::Tensor z = torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
      x = x * torch::sigmoid(up[i](torch::relu(down[i](z)))).unsqueeze(2).unsqueeze(3);
      if (i % 2) x = torch::max_pool2d(x, 2);
    }
    return out(x.flatten(1));
  }
  std::vector<torch::nn::Conv2d> conv;
  std::vector<torch::nn::BatchNorm2d> norm;
  std::vector<torch::nn::Linear> down, up;
  torch::nn::Linear out{nullptr};
};

TEST(SqueezeSpeed, GatesByAttendCostNoMoreThanEagerOnes) {
  torch::manual_seed(1);
  squeeze_excitation::Model ours({});
  Eager eager(32);
  const torch::Tensor x = torch::randn({64, 1, 28, 28});
  const std::vector<double> taken =
      medians({[&] { return ours.forward(x); }, [&] { return eager.forward(x); }}, 31);
  std::printf("squeeze-excitation, 64 pictures: eager takes %.2f x as long; %d threads\n",
              taken[1] / taken[0], at::get_num_threads());
  EXPECT_GE(taken[1] / taken[0], 1.0);
}

}  // namespace
}  // namespace fovea::systems
