// Systems that are one another under another name. Those that need no tensors or no system are tested where the
// thing itself is:
//
//  1 Gaussian kernel = softmax of -|q-k|²/2h²       identities_test  AGaussianKernelIsASoftmaxOf…
//    unit norm = dot product over h²                identities_test  AGaussianKernelOfUnitVectorsIs…
//  2 fixed attention with θ = 0 = mean pooling      words_model_test ThetaZeroIsMeanPooling
//    mil, plain = fixed attention, MLP, b = 0       here
//  3 hierarchical, one sentence = fixed attention   words_model_test OneSentenceIsFixedAttentionOn…
//    memory network, one hop = unscaled dot product here
//  4 graph attention, complete graph = dense        gat_test, identities_test ACompleteGraphIsDense…
//    relative positions with zero tables = none     identities_test  ModifiersThatDoNothing
//    a window of the whole length = dense           identities_test  StructuresThatKeepTheSamePairs
//  5 a chain of binary states, b = 0 = sigmoid      here
//    entmax with α → 1 = softmax                    identities_test  EntmaxMeetsItsNeighbours
//    top-k experts, k = all = dense mixture         here
//  6 beam of 1 = greedy                             beam_search_test ABeamOfOneIsGreedy
//    α = 0 = raw log probability                    here
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fovea/attend.h"
#include "fovea/nn/beam_search.h"
#include "systems/fixed_attention/model.h"
#include "systems/mil/model.h"
#include "systems/scaled_dot_product/six_steps.h"

namespace fovea::systems {
namespace {

double gap(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// Both models weigh the same vectors: those that mil embeds are the words of fixed attention.
TEST(CrossChecks, MultipleInstanceAttentionIsFixedAttentionWithAnMlp) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  mil::Model bags({.inputs = 5, .attention = 7, .pool = "attention"});
  bags.eval();
  const torch::Tensor h = bags.embed(torch::randn({9, 5}));  // [9, 64]
  FixedAttentionModel words(
      {.embedding = {.words = 4 + 9, .width = 64}, .score = FixedScore::kMlp, .hidden = 7});
  words.eval();
  const auto s5 = bags.named_parameters();
  auto s8 = words.named_parameters();
  s5["v.bias"].zero_();
  s8["key.bias"].zero_();
  s8["key.weight"].copy_(s5["v.weight"]);
  words.theta[0].copy_(s5["w"]);
  words.embedding->weight.slice(0, 4).copy_(h);

  const torch::Tensor offsets = torch::tensor({0, 3, 9}, torch::kInt32);
  const auto parts = bags.parts(h, offsets);
  const text::Batch batch{torch::arange(4, 13), offsets, torch::tensor({0, 1, 2}, torch::kInt32),
                          torch::zeros({2}, torch::kLong)};
  const text::Answer answer = words.answer(batch, text::Want::kLook);
  const torch::Tensor weights = fovea::weights(parts.query, parts.key, parts.choices).weights;
  EXPECT_LT(gap(answer.look.words[0].slice(0, 0, 3), weights[0].flatten().slice(0, 0, 3)), 1e-6);
  EXPECT_LT(gap(answer.look.words[0].slice(0, 3), weights[1].flatten()), 1e-6);
  const torch::Tensor mixed =
      attend(parts.query, parts.key, h.unsqueeze(1), parts.choices).squeeze(1);
  EXPECT_LT(gap(answer.logits, mixed.matmul(s8["output.weight"].t()) + s8["output.bias"]), 1e-5);
}

// One hop: p = softmax(uᵀ m_i), o = Σ p_i c_i. The six steps without the third.
TEST(CrossChecks, OneHopOverAMemoryIsUnscaledDotProductAttention) {
  torch::manual_seed(2);
  const torch::Tensor u = torch::randn({8}), m = torch::randn({6, 8}), c = torch::randn({6, 5});
  const torch::Tensor p = m.matmul(u).softmax(0), o = p.matmul(c);
  const auto four = [](const torch::Tensor& x) { return x.unsqueeze(0).unsqueeze(0); };
  const torch::Tensor one_query = four(u.unsqueeze(0));
  EXPECT_LT(gap(attend(one_query, four(m), four(c), {.score = Dot{1.0}}).flatten(), o), 1e-6);
  const scaled_dot_product::SixSteps steps =
      scaled_dot_product::six_steps(u * std::sqrt(8.0), m, c);  // undoes the scale
  EXPECT_LT(gap(steps.weights, p), 1e-6);
  EXPECT_LT(gap(steps.sum, o), 1e-5);
}

// p(z) ∝ exp(Σ θ_i z_i), summed over all 2^n chains: with no potentials between neighbours each
// z_i is on its own.
TEST(CrossChecks, AChainWithoutPairsIsSigmoidAttention) {
  torch::manual_seed(3);
  constexpr int64_t kLength = 6;
  const torch::Tensor theta = torch::randn({kLength}, torch::kFloat64) * 2;
  torch::Tensor marginals = torch::zeros({kLength}, torch::kFloat64);
  double total = 0;
  for (int64_t chain = 0; chain < 1 << kLength; ++chain) {
    torch::Tensor z = torch::zeros({kLength}, torch::kFloat64);
    for (int64_t i = 0; i < kLength; ++i) z[i] = static_cast<double>(chain >> i & 1);
    const double weight = std::exp(theta.dot(z).item<double>());
    marginals += weight * z;
    total += weight;
  }
  const torch::Tensor x = torch::randn({1, 1, kLength, 3}, torch::kFloat64);
  const torch::Tensor scores = theta.view({1, 1, 1, kLength});
  const Choices sigmoid{.score = Location{}, .normaliser = Sigmoid{}};
  EXPECT_LT(gap(fovea::weights(scores, x, sigmoid).weights.flatten(), marginals / total), 1e-12);
  EXPECT_LT(gap(attend(scores, x, x, sigmoid).flatten(), (marginals / total).matmul(x[0][0])),
            1e-12);
}

// y = Σ g_i E_i(x), g the softmax of the gate: keeping all E experts keeps the dense mixture.
TEST(CrossChecks, KeepingEveryExpertIsTheDenseMixture) {
  torch::manual_seed(4);
  constexpr int64_t kTokens = 5, kExperts = 8;
  const torch::Tensor x = torch::randn({kTokens, 6}, torch::kFloat64).requires_grad_(),
                      gate = torch::randn({6, kExperts}, torch::kFloat64).requires_grad_(),
                      experts = torch::randn({kExperts, 6, 4}, torch::kFloat64);
  const torch::Tensor said = torch::einsum("td,edo->teo", {x, experts});  // every E_i(x)
  const torch::Tensor dense = (x.matmul(gate).softmax(1).unsqueeze(2) * said).sum(1);
  // A query a token: its gate's row of scores; the keys' values are its experts' answers.
  const torch::Tensor value = said.unsqueeze(1), scores = x.matmul(gate).view({kTokens, 1, 1, -1});
  const torch::Tensor sparse = attend(scores, torch::zeros_like(value), value,
                                      {.score = Location{}, .normaliser = TopK{kExperts}})
                                   .view({kTokens, -1});
  EXPECT_LT(gap(sparse, dense), 1e-12);
  const auto gradients = [&](const torch::Tensor& y) {
    return torch::autograd::grad({y.square().sum()}, {x, gate}, {}, /*retain_graph=*/true);
  };
  const auto a = gradients(sparse), b = gradients(dense);
  for (size_t n = 0; n < 2; ++n) EXPECT_LT(gap(a[n], b[n]), 1e-10) << n;
}

TEST(CrossChecks, NoLengthNormalisationIsTheRawLogProbability) {
  for (const int64_t length : {1, 2, 7, 100}) EXPECT_EQ(nn::length_penalty(length, 0), 1);
}

}  // namespace
}  // namespace fovea::systems
