// A RUN's weights in the form of others.
#pragma once

#include <filesystem>

#include "systems/run/session.h"

namespace fovea::systems {

// Writes the files into `out` and says which. UsageError where the system has no such form, or where a
// file is there already and `overwrite` is not set.
Written export_run(const Run& run, const std::filesystem::path& out, bool overwrite);

}  // namespace fovea::systems
