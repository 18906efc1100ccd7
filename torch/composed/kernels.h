// The kernels of distance, from the square of u.
#pragma once

#include <ATen/core/Tensor.h>

#include "fovea/choices.h"

namespace fovea::composed {

at::Tensor kernel_value(choice::KernelName name, const at::Tensor& squared);
// log K; -inf where K is 0. Silverman's kernel goes negative and is refused.
at::Tensor kernel_log(choice::KernelName name, const at::Tensor& squared);

}  // namespace fovea::composed
