#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::sparse_patterns {

std::unique_ptr<Task> make_sparse_patterns(const RunOptions& run_options);

}  // namespace fovea::systems::sparse_patterns
