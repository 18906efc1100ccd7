// A curve whose pieces need different experts, and pictures whose classes do.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::mixture_of_experts {

std::unique_ptr<Task> make_curve(const RunOptions& run_options);
std::unique_ptr<Task> make_pictures(const RunOptions& run_options);

}  // namespace fovea::systems::mixture_of_experts
