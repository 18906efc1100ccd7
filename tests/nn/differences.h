// The gradient of a loss against central differences, one number of each tensor at a time.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace fovea::nn::test {

// `loss()` is a scalar in double precision, the same each time for the same leaves.
template <class Loss>
void expect_gradients_of_differences(const Loss& loss, const std::vector<at::Tensor>& leaves,
                                     double tolerance = 1e-6) {
  constexpr double kStep = 1e-6;
  for (const at::Tensor& leaf : leaves) leaf.mutable_grad() = at::Tensor();
  loss().backward();
  const at::NoGradGuard no_grad;
  for (size_t which = 0; which < leaves.size(); ++which) {
    const at::Tensor flat = leaves[which].view({-1}), gradient = leaves[which].grad();
    for (int64_t i = 0; i < flat.numel(); ++i) {
      const double at = flat[i].template item<double>();
      flat[i] = at + kStep;
      const double above = loss().template item<double>();
      flat[i] = at - kStep;
      const double below = loss().template item<double>();
      flat[i] = at;
      const double got = gradient.defined() ? gradient.reshape({-1})[i].template item<double>() : 0;
      EXPECT_NEAR(got, (above - below) / (2 * kStep), tolerance * std::max(1.0, std::abs(got)))
          << "number " << i << " of tensor " << which;
    }
  }
}

}  // namespace fovea::nn::test
