#include "nn/products/product.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/nn/distance.h"

namespace fovea::nn {
namespace {

using at::Tensor;
using test::distance;

// Of the row's scale: sums of `inner` products of numbers of spread 1.
double near(int64_t inner) { return 3e-6 * static_cast<double>(inner); }

struct Sizes {
  int64_t rows, inputs, outputs;
};
const std::vector<Sizes> kSizes = {{0, 5, 3},       {1, 3, 2},      {7, 384, 1536},
                                   {129, 130, 131}, {300, 64, 512}, {20'000, 16, 24}};

TEST(Product, IsLibtorchsWhateverMultiplies) {
  torch::manual_seed(1);
  for (const auto& [rows, inputs, outputs] : kSizes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << inputs << " x " << outputs);
    const Tensor a = torch::randn({rows, inputs}), b = torch::randn({inputs, outputs});
    EXPECT_LE(distance(product(a, b), at::mm(a, b)), near(inputs));
    const Tensor turned = b.t().contiguous().t(), wide = torch::randn({rows, 2 * inputs});
    EXPECT_LE(distance(product(a, turned), at::mm(a, b)), near(inputs));
    const Tensor part = wide.narrow(1, 1, inputs);
    EXPECT_LE(distance(product(part, b), at::mm(part, b)), near(inputs));
    EXPECT_LE(distance(product(a.t(), a), at::mm(a.t(), a)), near(rows)) << "transposed";
  }
}

TEST(Projected, AndItsGradientsAreLibtorchs) {
  torch::manual_seed(2);
  for (const auto& [rows, inputs, outputs] : kSizes)
    for (const bool with_bias : {true, false}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << inputs << " x " << outputs);
      const Tensor x = torch::randn({2, rows, inputs}, torch::requires_grad()),
                   weight = torch::randn({outputs, inputs}, torch::requires_grad()),
                   bias = with_bias ? torch::randn({outputs}, torch::requires_grad()) : Tensor();
      std::vector<Tensor> leaves = {x, weight};
      if (with_bias) leaves.push_back(bias);
      const Tensor ours = projected(x, weight, bias), theirs = at::linear(x, weight, bias);
      ASSERT_EQ(ours.sizes(), theirs.sizes());
      EXPECT_LE(distance(ours, theirs), near(inputs));
      const Tensor towards = torch::randn_like(ours).detach();
      const auto mine = torch::autograd::grad({ours}, leaves, {towards}),
                 their = torch::autograd::grad({theirs}, leaves, {towards});
      for (size_t i = 0; i < leaves.size(); ++i)
        EXPECT_LE(distance(mine[i], their[i]), near(std::max({2 * rows, outputs, inputs})));
    }
}

TEST(Projected, HasSecondDerivatives) {
  torch::manual_seed(3);
  const Tensor x = torch::randn({256, 128}, torch::requires_grad()),
               weight = torch::randn({128, 128}, torch::requires_grad());
  const auto of = [&](const Tensor& y) {
    const Tensor d = torch::autograd::grad({y.square().sum()}, {x}, {}, true, true)[0];
    return torch::autograd::grad({d.square().sum()}, {weight})[0];
  };
  const Tensor theirs = of(at::linear(x, weight));
  EXPECT_LT(distance(of(projected(x, weight)) / theirs.abs().max(), theirs / theirs.abs().max()),
            1e-5);
}

TEST(Product, TheNumberOfThreadsChangesNoBit) {
  if (!has_one_dnn()) GTEST_SKIP() << "MKL's products depend on the number of threads";
  torch::manual_seed(4);
  const int before = at::get_num_threads();
  for (const Sizes& size : {Sizes{7, 384, 1536}, {129, 130, 131}, {64, 16'384, 64}}) {
    const auto& [rows, inputs, outputs] = size;
    const Tensor a = torch::randn({rows, inputs}), b = torch::randn({inputs, outputs});
    at::set_num_threads(1);
    const Tensor one = product(a, b);
    at::set_num_threads(4);
    EXPECT_TRUE(torch::equal(product(a, b), one)) << rows << " x " << inputs << " x " << outputs;
  }
  at::set_num_threads(before);
}

TEST(Projected, OtherNumbersAndWrongShapesAreLibtorchs) {
  const Tensor x = torch::randn({256, 128}, torch::kDouble),
               weight = torch::randn({128, 128}, torch::kDouble);
  EXPECT_TRUE(torch::equal(projected(x, weight), at::linear(x, weight)));
  EXPECT_EQ(projected(torch::randn({128}), torch::randn({64, 128})).sizes(), at::IntArrayRef({64}));
  EXPECT_THROW(projected(torch::randn({256, 128}), torch::randn({128, 64})), c10::Error);
}

}  // namespace
}  // namespace fovea::nn
