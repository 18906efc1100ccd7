// Which of several processes this one is, as its launcher says in the environment: torchrun, mpirun,
// Slurm's srun, or `fovea train --workers`. Does not include libtorch.
#pragma once

#include <optional>
#include <string>

namespace fovea::train {

struct Place {
  int rank = 0, size = 1;
  std::string address = {};  // where the store is kept, through which ranks find each other
  int port = 0;
  bool store_is_launchers = false;  // otherwise rank 0 keeps it
  int restarts = 0;                 // how often the launcher has started all ranks again
};

// None where no launcher speaks. UsageError names the variable that is missing or wrong.
std::optional<Place> place_in_environment();

}  // namespace fovea::train
