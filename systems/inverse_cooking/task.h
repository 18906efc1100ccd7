// From a picture, or a title, to the ingredients and the recipe.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::inverse_cooking {

std::unique_ptr<Task> make_inverse_cooking(const RunOptions& run_options);

}  // namespace fovea::systems::inverse_cooking
