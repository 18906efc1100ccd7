// Update rules: SGD with momentum, Adam, AdamW, AdaGrad, RMSProp, Adadelta. The same numbers as
// torch.optim, on libtorch's fused and grouped kernels, with a state that is a plain list of named
// tensors.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>
#include <vector>

#include "train/descent/recipe.h"

namespace fovea::train {

// Parameters that share a factor on the rate and a weight decay.
struct ParameterGroup {
  std::vector<torch::Tensor> parameters = {};
  double rate_factor = 1;
  double weight_decay = -1;  // -1: the recipe's
};

class Optimiser {
 public:
  Optimiser(std::vector<ParameterGroup> groups, const Recipe& recipe);

  // A parameter without a gradient is left alone, its slots too.
  void step(double rate_factor);
  void zero_grad();
  // Scales the whole gradient down to norm `most` where it is longer; returns the norm it had.
  torch::Tensor clip(double most);

  std::map<std::string, torch::Tensor> state() const;
  void restore(const std::map<std::string, torch::Tensor>& state);

 private:
  struct Group {
    ParameterGroup given;
    std::vector<torch::Tensor> first, second, steps;  // slots of each parameter, made at the start
  };
  // The parameters of a group that have a gradient, with their slots.
  struct Active {
    std::vector<torch::Tensor> parameters, gradients, first, second, steps;
  };
  static Active active(const Group&);
  void update(Active&, double rate, double weight_decay);

  Recipe recipe_;
  std::vector<Group> groups_;
};

}  // namespace fovea::train
