// The result of an evaluation, as a few lines for people.
#pragma once

#include <string>

#include "train/types.h"

namespace fovea::cli {

std::string report_text(const Json& report);

}  // namespace fovea::cli
