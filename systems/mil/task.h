// The label of a bag, and the instances it rests on.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::mil {

std::unique_ptr<Task> make_multiple_instance(const RunOptions& run_options);

}  // namespace fovea::systems::mil
