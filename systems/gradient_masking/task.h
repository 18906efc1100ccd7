// Two inputs, the second of which is never attended to: how far each moves.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::gradient_masking {

std::unique_ptr<Task> make_gradient_masking(const RunOptions& run_options);

}  // namespace fovea::systems::gradient_masking
