// Pictures and what is told about them.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::show_attend_tell {

std::unique_ptr<Task> make_show_attend_tell(const RunOptions& run_options);

}  // namespace fovea::systems::show_attend_tell
