// Pictures and the labels that are in them.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::image_to_set {

std::unique_ptr<Task> make_image_to_set(const RunOptions& run_options);

}  // namespace fovea::systems::image_to_set
