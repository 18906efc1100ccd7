// Which expert does what: experts by kind of item, items between their experts, loads during
// training.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "explain/explanation.h"
#include "fovea/nn/mixture_of_experts.h"

namespace fovea::systems::mixture_of_experts {

struct Routing {
  std::vector<std::string> kinds = {};  // classes, pieces, single items
  std::vector<int64_t> kind_of = {};    // of each item
  torch::Tensor gates = {};             // [items, experts]
  torch::Tensor loads = {};             // [epochs, experts], zero where no epoch was
};

// Rows are kinds, columns experts, a cell the mean gate; with two plots.
explain::Explanation who_does_what(const Routing& routing,
                                   const nn::MixtureOfExpertsOptions& options,
                                   const std::string& title);

// A curve of one input: what was measured, the mixture, and each expert where it has the largest gate.
struct CurvePoints {
  std::vector<double> x = {}, y = {};       // measured
  std::vector<double> at = {}, mixed = {};  // the model's curve, in order of x
  std::vector<int64_t> owner = {};          // of the model's points
  std::vector<double> own = {};             // the owner's own answer
  std::string x_label = {}, y_label = {};
};
explain::Plot curve_plot(const CurvePoints& points, int64_t experts);

}  // namespace fovea::systems::mixture_of_experts
