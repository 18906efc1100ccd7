// `train --sweep key=a,b,c`: a RUN for each value of an option, or for each combination of several.
#pragma once

#include <string>
#include <vector>

#include "cli/output/figures_table.h"
#include "cli/side_by_side.h"
#include "systems/run/session.h"
#include "train/progress.h"

namespace fovea::cli {

// The RUNs of a sweep, in the order of the values. Each lies in a folder of `request.out` that is
// named by its settings: width=16,heads=2. Refuses an option or a value that the system does not
// accept. Unless the request resumes or overwrites, it also refuses a folder that is not empty.
std::vector<Job> sweep_of(const systems::TrainRequest& request,
                          const std::vector<std::string>& sweeps);

// Trains each RUN that is not complete, `jobs` at a time, and evaluates all of them.
std::vector<Compared> train_sweep(const std::vector<Job>& runs, int jobs, train::Progress&);

// A line for each RUN, a column for each figure.
std::string sweep_table(const std::vector<Compared>& all);

}  // namespace fovea::cli
