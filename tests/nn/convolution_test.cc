// Light and dynamic convolutions: against loops, against `attend`, at the ends of sequences, step by
// step.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fovea/nn/convolution.h"
#include "nn/light/convolve.h"
#include "tests/nn/differences.h"
#include "tests/nn/distance.h"

namespace fovea::nn {
namespace {

using test::distance;

// o_{t,c} = sum_j w_{t,h(c),j} x_{t+j-left,c}, as the equation is written.
at::Tensor by_loop(const at::Tensor& x, const at::Tensor& weight, int64_t left) {
  const int64_t batch = x.size(0), length = x.size(1), width = x.size(2), heads = weight.size(2);
  const at::Tensor out = at::zeros_like(x);
  const auto from = x.accessor<double, 3>();
  const auto w = weight.accessor<double, 4>();
  auto to = out.accessor<double, 3>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t t = 0; t < length; ++t)
      for (int64_t c = 0; c < width; ++c)
        for (int64_t j = 0; j < weight.size(3); ++j) {
          const int64_t s = t + j - left;
          if (s >= 0 && s < length) to[b][t][c] += w[b][t][c * heads / width][j] * from[b][s][c];
        }
  return out;
}

struct Shape {
  int64_t batch, length, width, heads, kernel, left;
};
const std::vector<Shape> kShapes = {
    {2, 9, 12, 3, 3, 1},    // around
    {2, 9, 12, 3, 3, 2},    // before
    {1, 4, 40, 2, 7, 3},    // a kernel wider than the sequence
    {3, 1, 6, 6, 5, 4},     // one position, heads of one column
    {2, 130, 34, 2, 1, 0},  // one offset; widths that fill no vector, positions that fill no block
    {2, 70, 12, 3, 15, 7},  // several blocks of a band, the last of them not full
    {2, 65, 8, 2, 5, 4},   {2, 33, 8, 1, 31, 0},  // a kernel wider than a block
    {2, 0, 8, 2, 3, 1},    {0, 9, 8, 2, 3, 1}     // nothing
};

TEST(Convolve, IsTheLoop) {
  torch::manual_seed(1);
  for (const Shape& s : kShapes) {
    const at::Tensor x = torch::randn({s.batch, s.length, s.width}, at::kDouble),
                     w = torch::randn({s.batch, s.length, s.heads, s.kernel}, at::kDouble);
    const at::Tensor expected = by_loop(x, w, s.left);
    EXPECT_LT(distance(convolve(x, w, s.left), expected), 1e-13);
    const at::Tensor narrow = convolve(x.to(at::kFloat), w.to(at::kFloat), s.left);
    EXPECT_LT(distance(narrow.to(at::kDouble), expected), 1e-5);
    const at::Tensor padded = at::constant_pad_nd(x, {0, 0, s.left, s.kernel - 1 - s.left});
    if (s.length > 0) {
      EXPECT_LT(distance(weighted_windows(padded, w), expected), 1e-13);
    }
    EXPECT_LT(distance(banded_products(x, w, s.left), expected), 1e-13);  // what a GPU computes
  }
}

TEST(Convolve, GradientsAreThoseOfDifferences) {
  torch::manual_seed(2);
  for (const Shape& s : {Shape{2, 5, 6, 2, 3, 1}, Shape{1, 4, 4, 2, 5, 4}}) {
    const at::Tensor x = torch::randn({s.batch, s.length, s.width}, at::kDouble)
                             .set_requires_grad(true),
                     w = torch::randn({s.batch, s.length, s.heads, s.kernel}, at::kDouble)
                             .set_requires_grad(true),
                     g = torch::randn({s.batch, s.length, s.width}, at::kDouble);
    test::expect_gradients_of_differences([&] { return (convolve(x, w, s.left) * g).sum(); },
                                          {x, w});
    // And again: the gradient of a function of the gradient.
    test::expect_gradients_of_differences(
        [&] {
          const torch::autograd::AutoGradMode on(true);
          const auto first = torch::autograd::grad({(convolve(x, w, s.left).pow(2) * g).sum()},
                                                   {x, w}, {}, true, true);
          return first[0].pow(2).sum() + first[1].pow(2).sum();
        },
        {x, w}, 1e-4);
  }
}

TEST(Convolve, BandsHaveTheGradientsOfTheEngine) {
  torch::manual_seed(5);
  for (const Shape& s : kShapes) {
    const at::Tensor x = torch::randn({s.batch, s.length, s.width}, at::kDouble)
                             .set_requires_grad(true),
                     w = torch::randn({s.batch, s.length, s.heads, s.kernel}, at::kDouble)
                             .set_requires_grad(true),
                     g = torch::randn({s.batch, s.length, s.width}, at::kDouble);
    const auto expected = torch::autograd::grad({convolve(x, w, s.left)}, {x, w}, {g}),
               got = torch::autograd::grad({banded_products(x, w, s.left)}, {x, w}, {g});
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(got[i].sizes(), expected[i].sizes());
      EXPECT_LT(distance(got[i], expected[i]), 1e-12) << i;
    }
  }
}

TEST(Convolve, DoesNotDependOnTheNumberOfThreads) {
  torch::manual_seed(3);
  const at::Tensor x = torch::randn({4, 100, 32}).set_requires_grad(true),
                   w = torch::randn({4, 100, 4, 7}).set_requires_grad(true);
  const auto run = [&](int threads) {
    at::set_num_threads(threads);
    const at::Tensor out = convolve(x, w, 3);
    auto all = torch::autograd::grad({out.pow(2).sum()}, {x, w});
    all.push_back(out.detach());
    return all;
  };
  const int before = at::get_num_threads();
  const auto one = run(1), three = run(3);
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << i;
}

TEST(Convolve, NamesWhatIsWrong) {
  const at::Tensor x = torch::randn({2, 5, 6});
  const auto said = [&](const at::Tensor& w, int64_t left) {
    try {
      convolve(x, w, left);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(said(torch::randn({2, 5, 4, 3}), 1).find("weight: shape [2, 5, 4, 3]"),
            std::string::npos);
  EXPECT_NE(said(torch::randn({2, 4, 3, 3}), 1).find("weight: shape"), std::string::npos);
  EXPECT_NE(said(torch::randn({2, 5, 3, 3}), 3).find("left: 3, expected 0 to 2"),
            std::string::npos);
}

// ---- the module ---------------------------------------------------------------------------------

std::vector<ConvolutionOptions> all_options() {
  std::vector<ConvolutionOptions> out;
  for (const Kernels kernels : {Kernels::kLight, Kernels::kDynamic})
    for (const Reach reach : {Reach::kBoth, Reach::kCausal})
      for (const Edges edges : {Edges::kZeros, Edges::kRenormalised})
        out.push_back({.width = 12,
                       .heads = 3,
                       .kernel = 5,
                       .kernels = kernels,
                       .reach = reach,
                       .edges = edges});
  return out;
}

class Convolutions : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    torch::manual_seed(4);
    module_ = Convolution(all_options()[GetParam()]);
    module_->to(at::kDouble);
    const torch::NoGradGuard no_grad;
    for (at::Tensor& p : module_->parameters()) p.normal_(0, 0.3);
  }
  bool causal() const { return module_->options().reach == Reach::kCausal; }
  bool zeros() const { return module_->options().edges == Edges::kZeros; }
  Convolution module_{nullptr};
};

TEST_P(Convolutions, IsACallOfAttend) {
  const at::Tensor x = torch::randn({2, 9, 12}, at::kDouble),
                   lengths = torch::tensor({9, 6}, at::kInt);
  const OffsetAttention call = module_->as_attention(x, lengths);
  const at::Tensor gated = at::glu(module_->linear1(x), -1);
  const at::Tensor values = gated.unflatten(-1, {3, 4}).transpose(1, 2);
  const at::Tensor heads =
      attend(call.query, call.key, values, call.choices, {.key_lengths = lengths});
  const at::Tensor expected = module_->linear2(heads.transpose(1, 2).flatten(2));
  const at::Tensor got = module_(x, lengths);
  EXPECT_LT(distance(got[0], expected[0]), 1e-12);
  EXPECT_LT(distance(got[1].slice(0, 0, 6), expected[1].slice(0, 0, 6)), 1e-12);
}

// Inside a sequence weights sum to 1. At its ends they do where they are renormalised; zeros take
// their share otherwise.
TEST_P(Convolutions, WeightsAreABandThatSumsToOneInside) {
  const at::Tensor weights = module_->weights(torch::randn({1, 9, 12}, at::kDouble));
  ASSERT_EQ(weights.sizes(), (std::vector<int64_t>{1, 3, 9, 9}));
  const int64_t left = module_->left(), right = 4 - left;
  for (int64_t i = 0; i < 9; ++i) {
    for (int64_t j = 0; j < 9; ++j)
      EXPECT_EQ(weights[0][0][i][j].item<double>() > 0, j >= i - left && j <= i + right)
          << i << " " << j;
    const double sum = weights[0][1][i].sum().item<double>();
    if (!zeros() || (i >= left && i + right < 9))
      EXPECT_NEAR(sum, 1, 1e-12) << i;
    else
      EXPECT_LT(sum, 0.999) << i;
  }
}

TEST_P(Convolutions, PaddingChangesNothing) {
  const at::Tensor x = torch::randn({1, 4, 12}, at::kDouble);
  const at::Tensor padded = at::cat({x, torch::randn({1, 7, 12}, at::kDouble)}, 1);
  const at::Tensor got = module_(padded, torch::tensor({4}, at::kInt)).slice(1, 0, 4);
  EXPECT_LT(distance(got, module_(x)), 1e-12);
  EXPECT_TRUE(got.isfinite().all().item<bool>());
}

TEST_P(Convolutions, GradientsAreThoseOfDifferences) {
  const at::Tensor x = torch::randn({2, 4, 12}, at::kDouble).set_requires_grad(true),
                   g = torch::randn({2, 4, 12}, at::kDouble);
  const at::Tensor lengths = torch::tensor({4, 2}, at::kInt);
  std::vector<at::Tensor> leaves = {x, module_->options().kernels == Kernels::kLight
                                           ? module_->weight
                                           : module_->weight_linear->weight};
  test::expect_gradients_of_differences(
      [&] { return (module_(x, lengths) * g).slice(1, 0, 2).sum(); }, leaves);
}

TEST_P(Convolutions, StepsEqualTheWhole) {
  const at::Tensor x = torch::randn({2, 9, 12}, at::kDouble);
  StepCache cache;
  if (!causal()) {
    EXPECT_THROW(module_->step_mixed(x, cache), InvalidArgument);
    return;
  }
  const at::Tensor whole = module_->mixed(x, {});
  int64_t done = 0;
  for (const int64_t n : {1, 1, 3, 1, 2, 1}) {  // one position at a time, and several
    const at::Tensor got = module_->step_mixed(x.narrow(1, done, n), cache);
    EXPECT_LT(distance(got, whole.narrow(1, done, n)), 1e-12) << done;
    done += n;
  }
}

TEST_P(Convolutions, CausalOnesSeeNoFuture) {
  if (!causal()) return;
  const at::Tensor x = torch::randn({1, 9, 12}, at::kDouble);
  at::Tensor other = x.clone();
  other.slice(1, 5).normal_();
  EXPECT_TRUE(at::equal(module_(x).slice(1, 0, 5), module_(other).slice(1, 0, 5)));
  EXPECT_FALSE(at::allclose(module_(x).select(1, 5), module_(other).select(1, 5)));
}

TEST_P(Convolutions, DropConnectActsAfterTheSoftmaxInTrainingOnly) {
  ConvolutionOptions options = all_options()[GetParam()];
  options.dropout = 0.5;
  Convolution dropping(options);
  dropping->to(at::kDouble);
  const at::Tensor x = torch::randn({1, 6, 12}, at::kDouble);
  EXPECT_FALSE(at::allclose(dropping(x), dropping(x)));
  const at::Tensor kernels = dropping->kernels(x);  // pictures show them before dropout
  EXPECT_GT(kernels.min().item<double>(), zeros() ? 0.0 : -1e-300);
  dropping->eval();
  EXPECT_TRUE(at::equal(dropping(x), dropping(x)));
}

TEST_P(Convolutions, CloneIntoModulesOfTheirOwn) {
  const at::Tensor x = torch::randn({1, 6, 12}, at::kDouble);
  const auto copy = std::dynamic_pointer_cast<ConvolutionImpl>(module_->clone());
  ASSERT_TRUE(copy);
  EXPECT_TRUE(at::equal(copy->forward(x), module_(x)));
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& p : copy->parameters()) p.mul_(1.5);
  }
  EXPECT_FALSE(at::allclose(copy->forward(x), module_(x)));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Convolutions, testing::Range<size_t>(0, 8));

TEST(ConvolutionOptions, NameWhatIsWrong) {
  EXPECT_THROW(Convolution(ConvolutionOptions{.width = 10, .heads = 3}), InvalidArgument);
  EXPECT_THROW(Convolution(ConvolutionOptions{.width = 12, .heads = 3, .kernel = 4}),
               InvalidArgument);
  EXPECT_NO_THROW(Convolution(
      ConvolutionOptions{.width = 12, .heads = 3, .kernel = 4, .reach = Reach::kCausal}));
  EXPECT_THROW(Convolution(ConvolutionOptions{.width = 12, .heads = 3, .dropout = 1}),
               InvalidArgument);
  EXPECT_THROW(Convolution(ConvolutionOptions{.width = 0}), InvalidArgument);
}

}  // namespace
}  // namespace fovea::nn
