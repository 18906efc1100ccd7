// Update rules: SGD with momentum, Adam, AdamW, AdaGrad, RMSProp, Adadelta. The same numbers as
// torch.optim, on libtorch's fused and grouped kernels, with a state that is a plain list of named
// tensors.
#pragma once

#include <torch/types.h>

#include <functional>
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

// What a training needs of an optimiser.
class Updates {
 public:
  virtual ~Updates() = default;
  virtual void zero_grad() = 0;
  // Scales the gradient down to norm `most`, unless that is 0, and updates the parameters. `step` is
  // named in messages.
  virtual void make(double rate_factor, double most, const std::string& step) = 0;
  virtual std::map<std::string, torch::Tensor> state() const = 0;
  virtual void restore(const std::map<std::string, torch::Tensor>& state) = 0;
};

class Optimiser : public Updates {
 public:
  // What it remembers of a parameter, zero at first: two tensors like it, and how many steps it has made.
  struct Slots {
    torch::Tensor first, second, steps;
  };
  // Asked for once for each parameter, group after group.
  using SlotsOf = std::function<Slots(const torch::Tensor& parameter)>;
  static Slots new_slots(const torch::Tensor& parameter);
  Optimiser(const std::vector<ParameterGroup>& groups, const Recipe& recipe,
            const SlotsOf& slots_of = new_slots);

  // A parameter without a gradient is left alone, its slots too.
  void step(double rate_factor);
  void zero_grad() override;
  // The norm of each gradient there is, group after group.
  std::vector<torch::Tensor> norms() const;
  // Scales the whole gradient down to norm `most` where it is longer; returns the norm it had.
  torch::Tensor clip(double most);
  // The same if some of the gradient is elsewhere: `norms` are those of all of it.
  torch::Tensor clip(double most, const torch::Tensor& norms);

  void make(double rate_factor, double most, const std::string& step) override;
  std::map<std::string, torch::Tensor> state() const override;
  void restore(const std::map<std::string, torch::Tensor>& state) override;

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
  std::vector<torch::Tensor> gradients() const;
  void update(Active&, double rate, double weight_decay);

  Recipe recipe_;
  std::vector<Group> groups_;
};

}  // namespace fovea::train
