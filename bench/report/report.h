// A run's results, for people, for programs and for a browser.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/run.h"

namespace fovea::bench {

// The roofs, one line for each row, and a tick or a cross against each figure.
std::string table(const Report& report);
nlohmann::ordered_json to_json(const Report& report);
// One self-contained page: bars against the peers, time and memory against n on log axes with the
// predicted slope.
std::string to_html(const Report& report);

// "12.3 MB"
std::string megabytes(double bytes);

}  // namespace fovea::bench
