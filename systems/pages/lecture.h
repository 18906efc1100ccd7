// A system as a part of a report: its idea, equation and code beside what it found.
#pragma once

#include <string>
#include <vector>

#include "explain/report.h"
#include "systems/system.h"
#include "train/types.h"

namespace fovea::systems {

// `report` is what evaluate says of the run (null: nothing was judged); `command` is the line that
// made it.
explain::Section lecture(const System& system, std::vector<explain::Explanation> pictures,
                         const Json& report, const std::string& command);

// A metric as people read it: fractions in per cent, the rest to four digits.
std::string metric_text(const std::string& name, double value);

}  // namespace fovea::systems
