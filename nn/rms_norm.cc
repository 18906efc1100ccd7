#include "fovea/nn/rms_norm.h"

#include <ATen/ATen.h>

namespace fovea::nn {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return x * at::rsqrt(x.square().mean(-1, true) + epsilon) * weight;
}

RmsNormImpl::RmsNormImpl(int64_t width, double epsilon) : width_(width), epsilon_(epsilon) {
  reset();
}

void RmsNormImpl::reset() { weight = register_parameter("weight", at::ones({width_})); }

at::Tensor RmsNormImpl::forward(const at::Tensor& x) { return rms_norm(x, weight, epsilon_); }

}  // namespace fovea::nn
