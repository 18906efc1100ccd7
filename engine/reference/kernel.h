// The thirteen kernels of Nadaraya-Watson regression: K(u) and K'(u), log K(u) and its derivative,
// for u >= 0.
#pragma once

#include <cmath>
#include <numbers>

#include "fovea/choices.h"

namespace fovea::reference {

// A table of formulae reads best with one on each line.
// clang-format off
template <class T>
T kernel_value(choice::KernelName name, T u) {
  using enum choice::KernelName;
  constexpr T pi = std::numbers::pi_v<T>;
  switch (name) {
    case kGaussian: return std::exp(-u * u / 2) / std::sqrt(2 * pi);
    case kLaplace: return std::exp(-u) / 2;
    case kLogistic: return 1 / (std::exp(u) + 2 + std::exp(-u));
    case kSigmoid: return 2 / pi / (std::exp(u) + std::exp(-u));
    case kSilverman: return std::exp(-u / std::sqrt(T(2))) * std::sin(u / std::sqrt(T(2)) + pi / 4) / 2;
    case kCauchy: return 1 / (pi * (1 + u * u));
    default: break;
  }
  if (u > 1) return 0;
  if (std::isnan(u)) return u;
  const T square = 1 - u * u;
  const T cube = 1 - u * u * u;
  switch (name) {
    case kBox: return T(1) / 2;
    case kTriangular: return 1 - u;
    case kEpanechnikov: return T(3) / 4 * square;
    case kQuartic: return T(15) / 16 * square * square;
    case kTriweight: return T(35) / 32 * square * square * square;
    case kTricube: return T(70) / 81 * cube * cube * cube;
    default: return pi / 4 * std::cos(pi * u / 2);
  }
}

template <class T>
T kernel_derivative(choice::KernelName name, T u) {
  using enum choice::KernelName;
  constexpr T pi = std::numbers::pi_v<T>;
  const T root = std::sqrt(T(2));
  switch (name) {
    case kGaussian: return -u * kernel_value(name, u);
    case kLaplace: return -kernel_value(name, u);
    case kLogistic: return -kernel_value(name, u) * std::tanh(u / 2);
    case kSigmoid: return -kernel_value(name, u) * std::tanh(u);
    case kSilverman: return std::exp(-u / root) * (std::cos(u / root + pi / 4) - std::sin(u / root + pi / 4)) /
             (2 * root);
    case kCauchy: return -2 * u / (pi * (1 + u * u) * (1 + u * u));
    default: break;
  }
  if (u > 1) return 0;
  if (std::isnan(u)) return u;
  const T square = 1 - u * u;
  const T cube = 1 - u * u * u;
  switch (name) {
    case kBox: return 0;
    case kTriangular: return -1;
    case kEpanechnikov: return -T(3) / 2 * u;
    case kQuartic: return -T(15) / 4 * u * square;
    case kTriweight: return -T(105) / 16 * u * square * square;
    case kTricube: return -T(70) / 9 * u * u * cube * cube;
    default: return -pi * pi / 8 * std::sin(pi * u / 2);
  }
}

// log K(u), written so that it holds where K underflows; -infinity where K is 0. Silverman's has
// none.
template <class T>
T kernel_log(choice::KernelName name, T u) {
  using enum choice::KernelName;
  constexpr T pi = std::numbers::pi_v<T>;
  switch (name) {
    case kGaussian: return -u * u / 2 - std::log(2 * pi) / 2;
    case kLaplace: return -u - std::log(T(2));
    case kLogistic: return -u - 2 * std::log1p(std::exp(-u));
    case kSigmoid: return std::log(2 / pi) - u - std::log1p(std::exp(-2 * u));
    default: return std::log(kernel_value(name, u));
  }
}

template <class T>
T kernel_log_derivative(choice::KernelName name, T u) {
  using enum choice::KernelName;
  switch (name) {
    case kGaussian: return -u;
    case kLaplace: return -1;
    case kLogistic: return -std::tanh(u / 2);
    case kSigmoid: return -std::tanh(u);
    default: return kernel_derivative(name, u) / kernel_value(name, u);
  }
}

// clang-format on

// Whether K has no zero: a ratio of such K's is formed from logarithms, since far from all keys K
// itself underflows.
inline bool kernel_is_positive(choice::KernelName name) {
  using enum choice::KernelName;
  return name == kGaussian || name == kLaplace || name == kLogistic || name == kSigmoid ||
         name == kCauchy;
}

}  // namespace fovea::reference
