// How much memory a model may take, kept to while it is made: a width or a number of layers that no
// machine has room for ends with a sentence instead of with the machine.
#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "train/task.h"

namespace fovea::train {

// The task's model; InvalidArgument as soon as its weights would pass the limit `weights`, before
// the memory for them is taken.
std::shared_ptr<torch::nn::Module> built(Task& task);

}  // namespace fovea::train
