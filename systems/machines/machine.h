// A network with a memory, run over sequences step by step.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

namespace fovea::systems::machines {

// The state of a machine at one step, for a batch of B.
struct Moment {
  torch::Tensor write, read;  // [B, heads, N]: the weights of each head
  torch::Tensor memory;       // [B, N, W], after the write
  torch::Tensor usage = {};   // [B, N]; undefined if a machine has none
  torch::Tensor links = {};   // [B, N, N]: row i was written after row j; undefined likewise
};
using Watch = std::function<void(const Moment&)>;

class Machine : public torch::nn::Module {
 public:
  // input [steps, B, width] -> [steps, B, outputs]; each sequence starts with a new memory.
  virtual torch::Tensor run(const torch::Tensor& input, const Watch& watch = {}) = 0;
  // How the machine finds rows, for the caption of a picture.
  virtual std::string score() const = 0;
};

// The steps of a cell of nn/; `seen` makes a Moment of one.
template <class Cell, class Seen>
torch::Tensor run_steps(Cell& cell, const torch::Tensor& input, const Watch& watch, Seen&& seen) {
  auto state = cell->start(input.size(1));
  std::vector<torch::Tensor> outputs;
  for (const torch::Tensor& x : input.unbind(0)) {
    auto step = cell(x, state);
    if (watch) watch(seen(step.state));
    outputs.push_back(step.output);
    state = std::move(step.state);
  }
  return torch::stack(outputs);
}

}  // namespace fovea::systems::machines
