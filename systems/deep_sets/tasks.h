// The two tasks of Deep Sets.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::deep_sets {

std::unique_ptr<Task> make_digit_sums(const Setting& setting);
std::unique_ptr<Task> make_solids(const Setting& setting);

}  // namespace fovea::systems::deep_sets
