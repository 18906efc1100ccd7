// Normalisers whose results over some keys and over others can be joined: keys go round once.
#pragma once

#include "torch/ranks/plan.h"

namespace fovea::over_ranks {

using PlanPointer = c10::intrusive_ptr<Plan>;

// Softmax (its sink left out), whose partial results are joined by their log-sum-exp; or Unnormalised
// or Sigmoid, whose results are added and have no lse.
AttendedOverRanks stream(const Tensor& query, const Tensor& key, const Tensor& value,
                         const Choices& choices, const PlanPointer& plan);

}  // namespace fovea::over_ranks
