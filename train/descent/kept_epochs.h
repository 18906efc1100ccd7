// The weights of the best epochs, or of the last ones: a training ends with their mean.
#pragma once

#include <torch/nn/module.h>

#include <vector>

#include "train/descent/recipe.h"
#include "train/descent/state.h"
#include "train/fields.h"
#include "train/task.h"

namespace fovea::train {

// The metric that a recipe monitors, turned so that less is better.
double monitored(const Recipe&, const Metrics&);

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
  // The weights after one epoch, and their figure in validation; less is better.
  struct Kept {
    int64_t epoch = 0;
    double value = 0;
    double loss = 0;  // decides between two equal figures
    TensorMap weights;
  };

  const Recipe& recipe_;
  const GradientTask& task_;
  std::vector<Kept> kept_;  // best, or newest, first
};

}  // namespace fovea::train
