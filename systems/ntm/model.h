// A neural Turing machine over sequences.
#pragma once

#include "fovea/nn/ntm.h"
#include "systems/machines/machine.h"

namespace fovea::systems::ntm {

class Model : public machines::Machine {
 public:
  explicit Model(const nn::NtmOptions& options) {
    cell_ = register_module("cell", nn::NtmCell(options));
  }
  torch::Tensor run(const torch::Tensor& input, const machines::Watch& watch) override {
    const nn::NtmOptions& o = cell_->options();
    return machines::run_steps(cell_, input, watch, [&](const nn::NtmState& state) {
      return machines::Moment{.write = state.weights.narrow(1, o.read_heads, o.write_heads),
                              .read = state.weights.narrow(1, 0, o.read_heads),
                              .memory = state.memory};
    });
  }
  std::string score() const override { return "β·cosine, interpolated, shifted, sharpened"; }

 private:
  nn::NtmCell cell_{nullptr};
};

}  // namespace fovea::systems::ntm
