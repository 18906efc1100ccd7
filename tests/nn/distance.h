// How far two tensors are apart.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

namespace fovea::nn::test {

// The largest difference of two numbers at the same place; 0 without numbers.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return a.numel() == 0 ? 0 : (a - b).abs().max().item<double>();
}

// The same shape, and no difference above `bound`.
inline bool close(const at::Tensor& a, const at::Tensor& b, double bound) {
  return a.sizes() == b.sizes() && distance(a, b) <= bound;
}

}  // namespace fovea::nn::test
