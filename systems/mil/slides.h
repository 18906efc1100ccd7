// Pictures with a label each, whose windows are the bag: the tissue slide.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::mil {

std::unique_ptr<Task> make_slides(const RunOptions& run_options);

}  // namespace fovea::systems::mil
