// The tour: a short run of every system on generated data, a page that explains each, and one of
// contents.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/progress.h"

namespace fovea::systems {

struct TourRequest {
  std::filesystem::path out;
  std::vector<std::string> only;  // names; empty: every system
  int threads = 0;
};

struct TourResult {
  std::vector<std::string> ran;     // names
  std::vector<std::string> failed;  // each with its reason, which is also shown through progress
  std::string found;                // what the attention found, in a line
  double seconds = 0;
  std::filesystem::path page;
};

// Writes a RUN and a page NAME.html for each system in `out`, index.html, which leads to them, and
// lectures.html, which leads to them in the order of the lectures; each has its name only when
// complete. A system that fails is named and the others continue; if all fail there is no page. Interrupted ends
// the tour.
TourResult tour(const TourRequest& request, train::Progress& progress);

}  // namespace fovea::systems
