// A RUN's weights in the format of another library.
#pragma once

#include <filesystem>

#include "systems/run/session.h"

namespace fovea::systems {

// Writes the files into `out` and returns which. UsageError if the system has no such format, or if
// a file exists and `overwrite` is not set.
Written export_run(const Run& run, const std::filesystem::path& out, bool overwrite);

}  // namespace fovea::systems
