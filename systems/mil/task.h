// The label of a bag, and the instances that decide it.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::mil {

std::unique_ptr<Task> make_multiple_instance(const RunOptions& run_options);

}  // namespace fovea::systems::mil
