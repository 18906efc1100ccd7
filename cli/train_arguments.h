// The command line that trains as a request asks: for a process of its own.
#pragma once

#include <string>
#include <vector>

#include "systems/run/session.h"

namespace fovea::cli {

std::vector<std::string> arguments_of(const systems::TrainRequest& request, int threads);

}  // namespace fovea::cli
