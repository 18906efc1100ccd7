// Who did what to whom, from one attention over the sentence.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::multi_head {

std::unique_ptr<Task> make_multi_head(const RunOptions& run_options);

}  // namespace fovea::systems::multi_head
