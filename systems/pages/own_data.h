// What a page says of a run that learned from a user's files: those, and nothing that was made up.
#pragma once

#include <string>

#include "systems/run/session.h"
#include "train/types.h"

namespace fovea::systems {

// The name of the file or folder that the run learned from; empty where its data are generated.
std::string own_data(const Json& config);

// "tickets.csv: 72 lines, 3 classes: …. Trained on 2026-03-01 14:05. Settings: epochs=3." Counts are
// left out where the run was opened without its data.
std::string own_words(const Run&);

// An idea without its sentences on generated data. They begin with "Without … of yours" and end a
// paragraph.
std::string general_idea(const std::string& idea);

// What evaluate tells of the run's test items, which explain has read: metrics, attention, items.
Json own_report(Run&);

// The 95 % interval of a share of `items` independent items (Wilson 1927).
struct Interval {
  double low = 0, high = 1;
};
Interval interval_of(double share, int64_t items);

}  // namespace fovea::systems
