// Training as one of several ranks. Rank 0 does all that one process would: it has the RUN's folder, and
// says what is trained next. The others read the same data and compute their parts of each batch. Does
// not include libtorch.
#pragma once

#include <optional>

#include "systems/run/session.h"
#include "train/ranks/place.h"

namespace fovea::systems {

// The report, on rank 0. `timeout`, in seconds, is how long another rank may be silent.
std::optional<Json> train_as_rank(const TrainRequest& request, const train::Place& place,
                                  double timeout, train::Progress& progress);

}  // namespace fovea::systems
