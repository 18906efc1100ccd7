// The two tasks: the odd one out, and what is missing.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::set_outlier {

std::unique_ptr<Task> make_outlier(const Setting& setting);
std::unique_ptr<Task> make_expansion(const Setting& setting);

}  // namespace fovea::systems::set_outlier
