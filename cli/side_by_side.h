// Trains several seeds or folds at a time, each in its own process. Small models gain nothing from a
// second thread, but two trainings can run at a time.
#pragma once

#include <string>
#include <vector>

#include "systems/run/session.h"
#include "train/progress.h"

namespace fovea::cli {

// Trains the members with these names. The first failure stops the others at their next save, and is
// thrown with what that process printed.
struct Processes {
  int jobs = 1;     // at a time
  int threads = 1;  // of each
};
void train_side_by_side(const systems::TrainRequest&, const std::vector<std::string>& names,
                        const Processes&, train::Progress&);

}  // namespace fovea::cli
