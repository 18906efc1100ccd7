// Copy and repeat-copy, for any machine with a memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "systems/machines/machine.h"
#include "train/task.h"

namespace fovea::systems::machines {

// A machine for a new run, or for one that was saved, perhaps before it had all its options.
enum class Origin { kNew, kSaved };
// Makes the machine from the widths of its input and its output at a step.
using MakeMachine =
    std::function<std::shared_ptr<Machine>(int64_t input, int64_t output, Origin origin)>;

// `task` (copy or repeat-copy), the other options of these tasks, and those of the machine. By
// default training sequences are cut in the first `curriculum` epochs.
std::vector<Option> options_with(Option task, int64_t curriculum, std::vector<Option> machine);
// The formats that it reads, for Info::formats.
std::vector<std::string> formats();

std::unique_ptr<Task> make_copy_task(const RunOptions& run_options, MakeMachine make);

}  // namespace fovea::systems::machines
