// Quaternion layers: the Hamilton product by hand, the linear map, attention, the stacks.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fovea/nn/light_transformer.h"
#include "fovea/nn/quaternion.h"
#include "tests/nn/differences.h"
#include "tests/nn/distance.h"

namespace fovea::nn {
namespace {

using test::distance;

at::Tensor quaternion(double r, double i, double j, double k) {
  return torch::tensor({r, i, j, k}, at::kDouble);
}

TEST(HamiltonProduct, IsTheOneOfTheBook) {
  const at::Tensor one = quaternion(1, 0, 0, 0), i = quaternion(0, 1, 0, 0),
                   j = quaternion(0, 0, 1, 0), k = quaternion(0, 0, 0, 1);
  EXPECT_TRUE(at::equal(hamilton_product(i, j), k));
  EXPECT_TRUE(at::equal(hamilton_product(j, k), i));
  EXPECT_TRUE(at::equal(hamilton_product(k, i), j));
  EXPECT_TRUE(at::equal(hamilton_product(j, i), -k));
  for (const at::Tensor& unit : {i, j, k})
    EXPECT_TRUE(at::equal(hamilton_product(unit, unit), -one));
  // (1 + 2i + 3j + 4k)(5 + 6i + 7j + 8k) = -60 + 12i + 30j + 24k
  EXPECT_TRUE(at::equal(hamilton_product(quaternion(1, 2, 3, 4), quaternion(5, 6, 7, 8)),
                        quaternion(-60, 12, 30, 24)));
}

TEST(HamiltonProduct, KeepsTheNormAndNamesWhatIsWrong) {
  torch::manual_seed(1);
  const at::Tensor a = torch::randn({4}, at::kDouble), b = torch::randn({4}, at::kDouble);
  EXPECT_NEAR(hamilton_product(a, b).norm().item<double>(), (a.norm() * b.norm()).item<double>(),
              1e-13);
  EXPECT_THROW(hamilton_product(torch::randn({6}), torch::randn({6})), InvalidArgument);
  EXPECT_THROW(hamilton_product(torch::randn({4}), torch::randn({8})), InvalidArgument);
}

// y_o = sum_i W_oi x_i + b_o, every term a Hamilton product.
TEST(QuaternionLinear, IsASumOfHamiltonProducts) {
  torch::manual_seed(2);
  QuaternionLinear module(8, 12);
  module->to(at::kDouble);
  {
    const torch::NoGradGuard no_grad;
    module->bias.normal_();
  }
  const at::Tensor x = torch::randn({8}, at::kDouble);
  const auto part = [](const at::Tensor& row, int64_t n) {  // quaternion n of a row
    return row.view({4, -1}).select(1, n);
  };
  const at::Tensor got = module(x);
  for (int64_t o = 0; o < 3; ++o) {
    at::Tensor expected = part(module->bias, o);
    for (int64_t i = 0; i < 2; ++i)
      expected = expected + hamilton_product(module->weight.select(1, o).select(1, i), part(x, i));
    EXPECT_LT(distance(part(got, o), expected), 1e-13) << o;
  }
}

TEST(QuaternionLinear, HasAQuarterOfTheWeights) {
  QuaternionLinear module(16, 32);
  EXPECT_EQ(4 * module->weight.numel(), torch::nn::Linear(16, 32)->weight.numel());
  EXPECT_EQ(module->bias.numel(), 32);
  EXPECT_THROW(QuaternionLinear(6, 8), InvalidArgument);
  EXPECT_THROW(QuaternionLinear(8, 0), InvalidArgument);
}

TEST(QuaternionLinear, GradientsAreThoseOfDifferences) {
  torch::manual_seed(3);
  QuaternionLinear module(8, 4);
  module->to(at::kDouble);
  const at::Tensor x = torch::randn({3, 8}, at::kDouble).set_requires_grad(true),
                   g = torch::randn({3, 4}, at::kDouble);
  test::expect_gradients_of_differences([&] { return (module(x) * g).sum(); },
                                        {x, module->weight, module->bias});
}

// Written out: the product of every query with every key, a softmax of each part, and each part of
// the weights on its part of the values.
at::Tensor attended_plainly(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            double scale) {
  const int64_t n = q.size(0), m = k.size(0);
  at::Tensor scores = at::zeros({4, n, m}, at::kDouble);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j)
      scores.select(1, i).select(1, j) = hamilton_product(q[i], k[j]).view({4, -1}).sum(1) * scale;
  const at::Tensor values = v.view({m, 4, -1}).transpose(0, 1);
  return at::matmul(at::softmax(scores, -1), values).transpose(0, 1).flatten(1);
}

TEST(QuaternionMultiHead, IsTheFormulaForOneHead) {
  torch::manual_seed(4);
  QuaternionMultiHead module(MultiHeadOptions{.width = 8, .heads = 1});
  module->to(at::kDouble);
  const at::Tensor x = torch::randn({1, 5, 8}, at::kDouble),
                   memory = torch::randn({1, 6, 8}, at::kDouble);
  const at::Tensor expected =
      module->out_proj(attended_plainly(module->query_proj(x)[0], module->key_proj(memory)[0],
                                        module->value_proj(memory)[0], 1 / std::sqrt(8.0)));
  EXPECT_LT(distance(module(x, memory)[0], expected), 1e-12);
}

TEST(QuaternionMultiHead, WeightsOfEachPartAreADistribution) {
  torch::manual_seed(5);
  QuaternionMultiHead module(MultiHeadOptions{.width = 16, .heads = 2});
  const at::Tensor x = torch::randn({2, 5, 16});
  const at::Tensor weights = module->weights(x, module->project(x), {.structure = Causal{}});
  ASSERT_EQ(weights.sizes(), (std::vector<int64_t>{2, 8, 5, 5}));
  EXPECT_LT(distance(weights.sum(-1), at::ones({2, 8, 5})), 1e-6);
  EXPECT_EQ(weights.triu(1).abs().max().item<double>(), 0);
}

TEST(QuaternionMultiHead, StepsEqualTheWhole) {
  torch::manual_seed(6);
  QuaternionMultiHead module(MultiHeadOptions{.width = 16, .heads = 2});
  const at::Tensor x = torch::randn({2, 6, 16});
  const at::Tensor whole = module->heads(x, x, {.structure = Causal{}});
  StepCache cache;
  for (int64_t t = 0; t < 6; ++t)
    EXPECT_LT(distance(module->step_heads(x.narrow(1, t, 1), cache), whole.narrow(1, t, 1)), 1e-5)
        << t;
}

TEST(QuaternionMultiHead, GradientsAreThoseOfDifferences) {
  torch::manual_seed(7);
  QuaternionMultiHead module(MultiHeadOptions{.width = 8, .heads = 2});
  module->to(at::kDouble);
  const at::Tensor x = torch::randn({1, 3, 8}, at::kDouble).set_requires_grad(true),
                   g = torch::randn({1, 3, 8}, at::kDouble);
  const at::Tensor lengths = torch::tensor({2}, at::kInt);
  test::expect_gradients_of_differences(
      [&] { return (module(x, x, Attention{.key_lengths = lengths}) * g).sum(); },
      {x, module->query_proj->weight, module->key_proj->weight, module->value_proj->weight});
}

TEST(QuaternionMultiHead, NamesWhatIsWrong) {
  EXPECT_THROW(QuaternionMultiHead(MultiHeadOptions{.width = 12, .heads = 2}), InvalidArgument);
  EXPECT_THROW(QuaternionMultiHead(MultiHeadOptions{.width = 16, .heads = 0}), InvalidArgument);
  EXPECT_THROW(QuaternionMultiHead(MultiHeadOptions{.width = 16, .heads = 2, .dropout = 1}),
               InvalidArgument);
}

// ---- the stacks ---------------------------------------------------------------------------------

int64_t weights_in(const torch::nn::Module& module) {
  int64_t n = 0;
  for (const at::Tensor& p : module.parameters()) n += p.numel();
  return n;
}

TEST(LightTransformer, ClonesAndRefusesNoKernels) {
  for (const Mixing mixing : {Mixing::kLight, Mixing::kDynamic, Mixing::kQuaternion}) {
    torch::manual_seed(8);
    const LightTransformerOptions options{
        .mixing = mixing,
        .layer = {.width = 16, .heads = 2, .hidden = 24, .dropout = 0, .attention_dropout = 0},
        .encoder_layers = 2,
        .decoder_layers = 2,
        .final_norm = true};
    LightTransformer module(options);
    const at::Tensor source = torch::randn({2, 5, 16}), target = torch::randn({2, 4, 16}),
                     lengths = torch::tensor({5, 3}, at::kInt);
    const auto copy = std::dynamic_pointer_cast<LightTransformerImpl>(module->clone());
    ASSERT_TRUE(copy);
    EXPECT_TRUE(at::equal(copy->forward(source, target, lengths), module(source, target, lengths)));
    LightTransformerOptions none = options;
    none.kernels = {};
    EXPECT_THROW(LightTransformer{none}, InvalidArgument);
  }
}

TEST(LightTransformer, QuaternionsHaveAQuarterOfTheWeightsInLinearMaps) {
  const LayerOptions layer{.width = 32, .heads = 2, .hidden = 64};
  LightTransformer quaternion(LightTransformerOptions{
      .mixing = Mixing::kQuaternion, .layer = layer, .encoder_layers = 1, .decoder_layers = 1});
  // Four maps of an attention, three attentions; two feed-forward nets. Biases and norms stay.
  const int64_t maps = 3 * 4 * 32 * 32 + 2 * 2 * 32 * 64,
                biases = 3 * 4 * 32 + 2 * (32 + 64) + 5 * 2 * 32;
  EXPECT_EQ(weights_in(*quaternion), maps / 4 + biases);
}

}  // namespace
}  // namespace fovea::nn
