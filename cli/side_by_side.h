// The runs of several seeds or folds in processes of their own: small models gain nothing from a
// second thread, and everything from a second run beside them.
#pragma once

#include <string>
#include <vector>

#include "systems/run/session.h"
#include "train/progress.h"

namespace fovea::cli {

// Leaves the members of these names trained. The first failure ends the others at their next save
// and is thrown with what that process printed.
struct Processes {
  int jobs = 1;     // at a time
  int threads = 1;  // of each
};
void train_side_by_side(const systems::TrainRequest&, const std::vector<std::string>& names,
                        const Processes&, train::Progress&);

}  // namespace fovea::cli
