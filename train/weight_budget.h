// The size of a model is counted before memory is allocated. A width or a number of layers that is
// too large is then an error message, and does not fill the memory.
#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "train/task.h"

namespace fovea::train {

// The task's model. Unless it is small, `build` is first called without allocating its weights.
// InvalidArgument gives the least size of a model beyond the limit `weights`.
std::shared_ptr<torch::nn::Module> built(Task& task);

}  // namespace fovea::train
