// Translation whose search is shown: greedy, with a beam, with and without length normalisation.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::beam_search {

std::unique_ptr<Task> make_beam_search(const RunOptions& run_options);

}  // namespace fovea::systems::beam_search
