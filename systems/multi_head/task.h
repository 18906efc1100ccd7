// Who did what to whom, read off one look at the sentence.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::multi_head {

std::unique_ptr<Task> make_multi_head(const RunOptions& run_options);

}  // namespace fovea::systems::multi_head
