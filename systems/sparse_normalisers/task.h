// Trains other systems under each normaliser, and stores the results.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::sparse_normalisers {

std::unique_ptr<Task> make_sparse_normalisers(const RunOptions& run_options);

}  // namespace fovea::systems::sparse_normalisers
