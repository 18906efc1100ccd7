// The next word of a text.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::next_word {

std::unique_ptr<Task> make_next_word(const RunOptions& run_options);

}  // namespace fovea::systems::next_word
