#include "nn/sublayer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "tests/nn/differences.h"
#include "tests/nn/distance.h"

namespace fovea::nn {
namespace {

using at::Tensor;

struct Layers {
  torch::nn::Linear in{nullptr}, out{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  explicit Layers(at::ScalarType type)
      : in(6, 11), out(11, 6), norm(torch::nn::LayerNormOptions({6})) {
    for (torch::nn::Module* module :
         std::initializer_list<torch::nn::Module*>{in.get(), out.get(), norm.get()})
      module->to(type);
    const torch::NoGradGuard no_grad;
    norm->weight.normal_();
    norm->bias.normal_();
  }
  std::vector<Tensor> parameters() {
    return {in->weight, in->bias, out->weight, out->bias, norm->weight, norm->bias};
  }
};

using test::distance;

TEST(Sublayer, IsTheFormulaWithoutDropout) {
  torch::manual_seed(1);
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    Layers l(type);
    const Tensor x = torch::randn({3, 70, 6}, type), y = torch::randn({3, 70, 11}, type);
    const double tolerance = type == torch::kFloat ? 1e-5 : 1e-12;
    EXPECT_LT(distance(project_add_norm(x, y, l.out, l.norm, 0), l.norm(x + l.out(y))), tolerance);
    EXPECT_LT(distance(feed_forward_add_norm(x, l.in, l.out, l.norm, 0),
                       l.norm(x + l.out(at::relu(l.in(x))))),
              tolerance);
  }
}

// First derivatives by the fused backward, by finite differences and, as second derivatives ask for
// it, by the plain formula.
void check_gradients(const std::vector<Tensor>& inputs, const std::function<Tensor()>& run) {
  const auto value = [&] {
    torch::manual_seed(9);  // the same is dropped every time
    return run();
  };
  const Tensor output = value(), towards = torch::randn_like(output).detach();
  const auto fused = torch::autograd::grad({output}, inputs, {towards}, /*retain_graph=*/true);
  const auto plain =
      torch::autograd::grad({output}, inputs, {towards}, true, /*create_graph=*/true);
  Tensor squares = torch::zeros({}, torch::kDouble);
  for (const Tensor& g : plain) squares = squares + g.square().sum();
  for (const Tensor& g : torch::autograd::grad({squares}, inputs, {}, /*retain_graph=*/true, false,
                                               /*allow_unused=*/true)) {
    EXPECT_TRUE(!g.defined() ||
                g.isfinite().all().item<bool>());  // the norm's bias has no second derivative
  }
  for (size_t n = 0; n < inputs.size(); ++n) {
    EXPECT_LT(distance(fused[n], plain[n]), 1e-10) << "input " << n;
    inputs[n].mutable_grad() = fused[n];
    test::expect_gradient_of_differences([&] { return (value() * towards).sum(); }, inputs[n], 0,
                                         1 + inputs[n].numel() / 7, "input " + std::to_string(n));
    inputs[n].mutable_grad() = Tensor();
  }
}

TEST(Sublayer, GradientsAreThoseOfTheFormula) {
  torch::manual_seed(2);
  Layers l(torch::kDouble);
  const Tensor x = torch::randn({2, 40, 6}, torch::kDouble).requires_grad_(),
               y = torch::randn({2, 40, 11}, torch::kDouble).requires_grad_();
  for (const double p : {0.0, 0.3}) {
    check_gradients({x, y, l.out->weight, l.out->bias, l.norm->weight, l.norm->bias},
                    [&] { return project_add_norm(x, y, l.out, l.norm, p); });
    std::vector<Tensor> all = l.parameters();
    all.insert(all.begin(), x);
    check_gradients(all, [&] { return feed_forward_add_norm(x, l.in, l.out, l.norm, p); });
  }
}

TEST(Sublayer, FrozenWeightsAreLeftAlone) {
  Layers l(torch::kFloat);
  for (Tensor& p : l.in->parameters()) p.requires_grad_(false);
  const Tensor x = torch::randn({4, 6}).requires_grad_();
  feed_forward_add_norm(x, l.in, l.out, l.norm, 0.1).sum().backward();
  EXPECT_FALSE(l.in->weight.grad().defined());
  EXPECT_TRUE(x.grad().defined());
  EXPECT_TRUE(l.out->weight.grad().defined());
}

}  // namespace
}  // namespace fovea::nn
