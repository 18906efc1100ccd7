// The weights of the best epochs, or of the last ones: a training ends with their mean.
#pragma once

#include <torch/nn/module.h>

#include <compare>
#include <limits>
#include <vector>

#include "train/descent/recipe.h"
#include "train/descent/state.h"
#include "train/fields.h"
#include "train/task.h"

namespace fovea::train {

// How good an epoch is; less is better.
struct Standing {
  double value = std::numeric_limits<double>::infinity();  // the monitored metric, or its negative
  double loss = std::numeric_limits<double>::infinity();   // decides between two equal ones, or 0
  auto operator<=>(const Standing&) const = default;
};
Standing standing(const Recipe&, const GradientTask&, const Metrics&);

class KeptEpochs {
 public:
  KeptEpochs(const Recipe& recipe, const GradientTask& task) : recipe_(recipe), task_(task) {}

  // Adds the weights to the best `average` epochs, or to the last ones if nothing says which is
  // best. One last epoch needs no copy: the model has its weights.
  void keep(int64_t epoch, const Metrics& metrics, const torch::nn::Module& model);

  bool empty() const { return kept_.empty(); }
  // Floating-point tensors averaged in double; others are those of the first.
  TensorMap mean() const;

  void put_into(State& state) const;
  // `numbers` are those of the state; weights are checked against the model, and moved to the device.
  void restore(const Fields& numbers, const TensorMap& tensors, const torch::nn::Module& model,
               torch::Device device);

 private:
  struct Kept {
    int64_t epoch = 0;
    Standing standing;
    TensorMap weights;  // after that epoch
  };

  const Recipe& recipe_;
  const GradientTask& task_;
  std::vector<Kept> kept_;  // best, or newest, first
};

}  // namespace fovea::train
