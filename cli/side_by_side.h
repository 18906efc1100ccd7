// Trains several RUNs, seeds or folds at a time, each in its own process. Small models gain nothing
// from a second thread, but two trainings can run at the same time.
#pragma once

#include <string>
#include <vector>

#include "systems/run/session.h"
#include "train/progress.h"

namespace fovea::cli {

// One training: a RUN, or a seed or fold of one (`request.only`).
struct Job {
  std::string name;  // for messages
  systems::TrainRequest request;
};
struct Processes {
  int jobs = 1;     // at a time
  int threads = 1;  // of each training; 0: each chooses its own number
};
// The first failure stops the others at their next save, and is thrown with what that process
// printed.
void train_side_by_side(const std::vector<Job>&, const Processes&, train::Progress&);

}  // namespace fovea::cli
