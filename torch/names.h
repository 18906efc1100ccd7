// The names of the choices' enumerations, in their order.
#pragma once

#include <span>

#include "fovea/choices.h"

namespace fovea {

inline constexpr const char* kActivationNames[] = {"tanh", "leaky_relu"};
inline constexpr const char* kAlignmentNames[] = {"top_left", "bottom_right"};
inline constexpr const char* kKernelNames[] = {
    "gaussian",   "laplace",      "logistic", "sigmoid",   "silverman", "cauchy", "box",
    "triangular", "epanechnikov", "quartic",  "triweight", "tricube",   "cosine"};

inline std::span<const char* const> names_of(choice::Activation) { return kActivationNames; }
inline std::span<const char* const> names_of(choice::Alignment) { return kAlignmentNames; }
inline std::span<const char* const> names_of(choice::KernelName) { return kKernelNames; }

}  // namespace fovea
