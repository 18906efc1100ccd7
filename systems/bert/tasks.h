// The tasks of bert.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::bert {

std::unique_ptr<Task> make_pretraining(const RunOptions& run_options);
std::unique_ptr<Task> make_classification(const RunOptions& run_options);
std::unique_ptr<Task> make_spans(const RunOptions& run_options);

}  // namespace fovea::systems::bert
