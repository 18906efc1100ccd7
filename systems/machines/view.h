// What the heads of a memory did over time: which rows they wrote and read, the contents of the
// memory, which rows are in use, and in which order they were written.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"
#include "systems/machines/machine.h"

namespace fovea::systems::machines {

struct Shown {
  std::string title;               // what went in
  std::string outcome;             // what came out
  std::vector<std::string> steps;  // a name for each
  std::vector<Moment> moments;     // of one sequence: B = 1
  int64_t taken_in = 0;            // steps after which the input was complete
  // Which row each step should read: (step, row), the row to which the word of that step was
  // written.
  std::vector<explain::Link> truth = {};
  std::vector<std::string> notes = {};
};
std::vector<explain::Explanation> pictures(const Machine& machine, const Shown& shown);

}  // namespace fovea::systems::machines
