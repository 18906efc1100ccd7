// Which class a picture is of, with a gate for each channel.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::squeeze_excitation {

std::unique_ptr<Task> make_squeeze_excitation(const RunOptions& run_options);

}  // namespace fovea::systems::squeeze_excitation
