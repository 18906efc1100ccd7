// Bars of a convolution's kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "explain/explanation.h"

namespace fovea::systems {

// Where the offsets of a kernel lie: around a position, or before it.
enum class KernelSide { kBoth, kBefore };

// Kernels [L, heads, kernel] of a sentence: their mean over its positions, a bar for each offset.
// Heads stand side by side; where there are many, a slider chooses one.
explain::Plot kernel_bars(const at::Tensor& kernels, KernelSide side, const std::string& name);

}  // namespace fovea::systems
