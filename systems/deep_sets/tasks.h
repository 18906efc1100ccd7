// The tasks of Deep Sets.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::deep_sets {

std::unique_ptr<Task> make_digit_sums(const RunOptions& run_options);
std::unique_ptr<Task> make_solids(const RunOptions& run_options);
std::unique_ptr<Task> make_tags(const RunOptions& run_options);

}  // namespace fovea::systems::deep_sets
