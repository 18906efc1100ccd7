// `fovea train --workers N`: N ranks on this machine, as torchrun would start them.
#pragma once

#include <string>
#include <vector>

#include "train/progress.h"

namespace fovea::cli {

struct Workers {
  int count = 1;
  int restarts = 0;  // how often all are started again after one was lost
};

// Runs this program with `arguments` as `count` ranks. What rank 0 prints is printed. Returns the exit
// code: that of the rank whose failure was the first cause.
int run_workers(const Workers& workers, const std::vector<std::string>& arguments,
                train::Progress& progress);

}  // namespace fovea::cli
