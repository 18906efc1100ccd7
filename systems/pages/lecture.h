// A section of a report about one system: its idea, equation, code, pictures and figures.
#pragma once

#include <string>
#include <vector>

#include "explain/report.h"
#include "systems/run/session.h"
#include "train/types.h"

namespace fovea::systems {

// The pictures, then the curves of the training. `report` is the result of evaluate (null: none);
// `command` is the command line that made the run.
explain::Section lecture(const Run& run, std::vector<explain::Explanation> pictures,
                         const Json& report, const std::string& command);

}  // namespace fovea::systems
