// The gradient of a loss against central differences, one number of each tensor at a time.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/engine/bounds.h"

namespace fovea::nn::test {

// The numbers from `first` on that lie `apart`, of one leaf of `loss`. `tolerance`, a share of the
// gradient, is for a loss that rounds more than its size says.
template <class Loss>
void expect_gradient_of_differences(const Loss& loss, const at::Tensor& leaf, int64_t first,
                                    int64_t apart, const std::string& what, double tolerance = 0) {
  constexpr double kStep = 1e-6;
  const at::NoGradGuard no_grad;
  const at::Tensor flat = leaf.view({-1}), gradient = leaf.grad();
  for (int64_t i = first; i < flat.numel(); i += apart) {
    const double at = flat[i].item<double>();
    double size = 1;
    const auto moved = [&](double by) {
      flat[i] = at + by;
      const double value = loss().template item<double>();
      size = std::max(size, std::fabs(value));
      return value;
    };
    const auto slope = [&](double by) { return (moved(by) - moved(-by)) / (2 * by); };
    // What the difference leaves out is less than what half the step changes; and it divides what
    // the loss rounds by the step.
    const double want = slope(kStep), left_out = 2 * std::fabs(want - slope(kStep / 2));
    flat[i] = at;
    const double got = gradient.defined() ? gradient.reshape({-1})[i].item<double>() : 0;
    const double bound = left_out + bounds::rounded(size, bounds::kDoubleUlp) / kStep;
    expect_close(got, want, std::max(bound, tolerance * std::max(1.0, std::fabs(got))),
                 what + ", number " + std::to_string(i));
  }
}

// `loss()` is a scalar in double precision, the same each time for the same leaves.
template <class Loss>
void expect_gradients_of_differences(const Loss& loss, const std::vector<at::Tensor>& leaves,
                                     double tolerance = 1e-6) {
  for (const at::Tensor& leaf : leaves) leaf.mutable_grad() = at::Tensor();
  loss().backward();
  for (size_t n = 0; n < leaves.size(); ++n)
    expect_gradient_of_differences(loss, leaves[n], 0, 1, "tensor " + std::to_string(n), tolerance);
}

// Which numbers of a module's parameters are compared: about `each` of every tensor, and not the
// first `padding` of words.weight, which are the vector of no word and do not learn.
struct Compared {
  int64_t each = 7, padding = 0;
};
template <class Loss>
void expect_gradients_of_differences(const Loss& loss, torch::nn::Module& module,
                                     const Compared& compared = {}) {
  module.zero_grad();
  loss().backward();
  for (const auto& named : module.named_parameters()) {
    const at::Tensor& parameter = named.value();
    EXPECT_TRUE(parameter.grad().defined()) << named.key() << " has no gradient";
    expect_gradient_of_differences(
        loss, parameter, named.key() == "words.weight" ? compared.padding : 0,
        std::max<int64_t>(1, parameter.numel() / compared.each), named.key());
  }
}

}  // namespace fovea::nn::test
