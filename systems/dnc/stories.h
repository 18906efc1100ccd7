// Questions about stories, for a DNC: one line in each step.
#pragma once

#include <memory>

#include "fovea/nn/dnc.h"
#include "train/task.h"

namespace fovea::systems::dnc {

// `options` without the widths of what goes in and comes out.
std::unique_ptr<Task> make_stories_task(const RunOptions& run_options,
                                        const nn::DncOptions& options);

}  // namespace fovea::systems::dnc
