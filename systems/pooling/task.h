// Bags of things as one vector, and a question that a pooling can or cannot answer.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::pooling {

std::unique_ptr<Task> make_pooling(const RunOptions& run_options);

}  // namespace fovea::systems::pooling
