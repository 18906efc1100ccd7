// Times self-attention, an LSTM and a convolution on this machine.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::cost {

std::unique_ptr<Task> make_cost(const RunOptions& run_options);

}  // namespace fovea::systems::cost
