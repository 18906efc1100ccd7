// A case through the engine, forward and backward, beside the reference and a naive run of the
// engine's own precision.
#pragma once

#include <string>
#include <vector>

#include "cases/cases.h"
#include "fovea/engine.h"

namespace fovea {

// How far one array is from the truth. The bound: twice the naive run's error, and a few units in
// the last place of the array's scale; where that is not enough, a few times what moving the inputs
// by such a unit does to the truth (fewer than one array in a thousand). comparison.cc has the
// numbers and why.
struct Agreement {
  std::string array;
  double error = 0;  // of the engine: the largest over the array
  double naive = 0;  // of the naive run
  double bound = 0;
  bool within = true;
  // The error in multiples of the naive run's, or of a unit in the last place where that is larger.
  double multiple = 0;
};

// Runs the problem of `built` (results and gradients are written there).
std::vector<Agreement> compare(cases::Built& built, const engine::Parallel& parallel);
// Forward alone, without the statistics that backward needs: as inference calls it.
std::vector<Agreement> compare_forward(cases::Built& built, const engine::Parallel& parallel);

// Fails the running test for every array that is out of bounds.
void expect_agreement(cases::Built& built, const engine::Parallel& parallel);
void expect_agreement(const cases::Case&);
void expect_forward_agreement(const cases::Case&);

// Along a random direction for each array: the difference of the engine's outputs in double against
// its gradients. `kinks` counts the arrays left out because the loss has a kink within the step.
std::vector<std::string> check_differences(const cases::Case&, int* kinks);

}  // namespace fovea
