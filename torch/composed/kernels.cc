#include "torch/composed/kernels.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "fovea/error.h"
#include "torch/composed/block.h"

namespace fovea::composed {
namespace {

using choice::KernelName;
using std::numbers::pi;

bool compact(KernelName name) { return name >= KernelName::kBox; }

// K(u) of a kernel with compact support, for u <= 1.
at::Tensor inside(KernelName name, const at::Tensor& u, const at::Tensor& squared) {
  const at::Tensor rest = 1 - squared;
  switch (name) {
    case KernelName::kBox:
      return at::full_like(u, 0.5);
    case KernelName::kTriangular:
      return 1 - u;
    case KernelName::kEpanechnikov:
      return 0.75 * rest;
    case KernelName::kQuartic:
      return 15. / 16 * rest.square();
    case KernelName::kTriweight:
      return 35. / 32 * rest.pow(3);
    case KernelName::kTricube:
      return 70. / 81 * (1 - u.pow(3)).pow(3);
    default:
      return pi / 4 * (u * (pi / 2)).cos();
  }
}

}  // namespace

at::Tensor kernel_value(KernelName name, const at::Tensor& squared) {
  const at::Tensor u = safe_sqrt(squared);
  if (compact(name)) return at::where(squared <= 1, inside(name, u, squared), 0.0);
  if (name != KernelName::kSilverman) return kernel_log(name, squared).exp();
  const at::Tensor v = u / std::numbers::sqrt2;
  return 0.5 * (-v).exp() * (v + pi / 4).sin();
}

at::Tensor kernel_log(KernelName name, const at::Tensor& squared) {
  const at::Tensor u = safe_sqrt(squared);
  switch (name) {
    case KernelName::kGaussian:
      return squared / -2 - 0.5 * std::log(2 * pi);
    case KernelName::kLaplace:
      return -u - std::log(2.0);
    case KernelName::kLogistic:
      return -u - 2 * (-u).exp().log1p();
    case KernelName::kSigmoid:
      return std::log(2 / pi) - u - (-2 * u).exp().log1p();
    case KernelName::kCauchy:
      return -squared.log1p() - std::log(pi);
    case KernelName::kSilverman:
      throw Unsupported(
          "score: Silverman's kernel goes negative and has no logarithm; it works with KernelRatio "
          "and "
          "Unnormalised");
    default:
      break;
  }
  // The value is positive for u < 1; elsewhere a harmless operand keeps the gradient of log finite.
  const at::Tensor positive = name == KernelName::kBox ? squared <= 1 : squared < 1;
  const at::Tensor value =
      inside(name, at::where(positive, u, 0.0), at::where(positive, squared, 0.0));
  return at::where(positive, value.log(), -std::numeric_limits<double>::infinity());
}

}  // namespace fovea::composed
