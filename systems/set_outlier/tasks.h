// The two tasks: the odd one out, and what is missing.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::set_outlier {

std::unique_ptr<Task> make_outlier(const RunOptions& run_options);
std::unique_ptr<Task> make_expansion(const RunOptions& run_options);

}  // namespace fovea::systems::set_outlier
