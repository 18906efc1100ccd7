// The network that drives a memory: from [x_t; r_{t-1}] it makes h, and from h the heads are made.
#pragma once

#include <torch/nn.h>

#include <cstdint>

namespace fovea::nn {

enum class ControllerKind {
  kLstm,         // remembers between steps; torch.nn.LSTMCell's names, its forget bias starts at 1
  kFeedForward,  // h = tanh(W [x; r] + b): the memory alone remembers
};

struct ControllerOptions {
  int64_t input = 0, reads = 0;  // widths of x_t and of all that was read
  int64_t hidden = 0;
  ControllerKind kind = ControllerKind::kLstm;
};

struct ControllerState {
  at::Tensor hidden, cell;  // [B, hidden]; no cell where it is feed-forward
};

class ControllerImpl : public torch::nn::Cloneable<ControllerImpl> {
 public:
  explicit ControllerImpl(const ControllerOptions& options);
  void reset() override;

  ControllerState start(int64_t batch) const;  // zeros
  // x [B, input], reads [B, heads, W] of the step before.
  ControllerState forward(const at::Tensor& x, const at::Tensor& reads,
                          const ControllerState& before);

  const ControllerOptions& options() const { return options_; }

 private:
  ControllerOptions options_;
  torch::nn::LSTMCell lstm_{nullptr};
  torch::nn::Linear linear_{nullptr};
};
TORCH_MODULE(Controller);

}  // namespace fovea::nn
