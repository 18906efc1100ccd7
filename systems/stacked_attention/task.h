// Questions about pictures, answered with one word of a list.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::stacked_attention {

std::unique_ptr<Task> make_stacked_attention(const RunOptions& run_options);

}  // namespace fovea::systems::stacked_attention
