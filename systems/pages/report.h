// The result of an evaluation as one JSON object, and the means of several.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "train/types.h"

namespace fovea::systems {

using Clock = std::chrono::steady_clock;

// `seconds` counts from `start`; `data` empty: the run's own data.
Json report(const Json& config, const std::string& data, Split split, const Evaluation& evaluation,
            const std::string& signature, Clock::time_point start);
// Means over members, spread as standard deviation (n - 1).
Json summary(const std::vector<Json>& reports);

}  // namespace fovea::systems
