// Questions about stories, read from bAbI's files, from JSON Lines, or generated.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::memory_network {

std::unique_ptr<Task> make_memory_network(const RunOptions& run_options);

}  // namespace fovea::systems::memory_network
