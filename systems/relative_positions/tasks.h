#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::relative_positions {

std::unique_ptr<Task> make_copy(const RunOptions& run_options);
std::unique_ptr<Task> make_music(const RunOptions& run_options);
std::unique_ptr<Task> make_graphs(const RunOptions& run_options);

}  // namespace fovea::systems::relative_positions
