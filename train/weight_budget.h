// How much memory a model may take, counted before it is taken: a width or a number of layers that no
// machine has room for ends with a sentence instead of with the machine.
#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "train/task.h"

namespace fovea::train {

// The task's model. Where it is not small, `build` is first gone through without memory for its
// weights. InvalidArgument says how many bytes there would be at least, and names the limit
// `weights`, which they pass.
std::shared_ptr<torch::nn::Module> built(Task& task);

}  // namespace fovea::train
