// The runs of several seeds or folds in processes of their own: small models gain nothing from a
// second thread, and everything from a second run beside them.
#pragma once

#include "systems/session.h"
#include "train/progress.h"

namespace fovea::cli {

// Leaves every member of the RUN trained; the same request with `resume` then reads them. The first
// failure ends the others at their next save and is thrown with what that process printed.
void train_side_by_side(const systems::TrainRequest&, int jobs, train::Progress&);

}  // namespace fovea::cli
