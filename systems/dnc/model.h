// A differentiable neural computer over sequences.
#pragma once

#include "fovea/nn/dnc.h"
#include "systems/machines/machine.h"

namespace fovea::systems::dnc {

class Model : public machines::Machine {
 public:
  explicit Model(const nn::DncOptions& options) {
    cell_ = register_module("cell", nn::DncCell(options));
  }
  torch::Tensor run(const torch::Tensor& input, const machines::Watch& watch) override {
    return machines::run_steps(cell_, input, watch, [](const nn::DncState& state) {
      return machines::Moment{.write = state.write_weights.unsqueeze(1),
                              .read = state.read_weights,
                              .memory = state.memory,
                              .usage = state.usage,
                              .links = state.links};
    });
  }
  std::string score() const override { return "β·cosine, allocation, links"; }

 private:
  nn::DncCell cell_{nullptr};
};

}  // namespace fovea::systems::dnc
