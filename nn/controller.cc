#include "fovea/nn/controller.h"

#include <ATen/ATen.h>

#include <string>
#include <tuple>

#include "fovea/error.h"
#include "nn/forget_gate.h"

namespace fovea::nn {

ControllerImpl::ControllerImpl(const ControllerOptions& options) : options_(options) { reset(); }

void ControllerImpl::reset() {
  const int64_t given = options_.input + options_.reads;
  if (options_.kind == ControllerKind::kLstm) {
    lstm_ = register_module("lstm", torch::nn::LSTMCell(given, options_.hidden));
    open_forget_gate(*lstm_, options_.hidden);
  } else {
    linear_ = register_module("linear", torch::nn::Linear(given, options_.hidden));
  }
}

ControllerState ControllerImpl::start(int64_t batch) const {
  const at::Tensor zeros =
      at::zeros({batch, options_.hidden}, (lstm_ ? lstm_->weight_ih : linear_->weight).options());
  return {zeros, lstm_ ? zeros : at::Tensor()};
}

ControllerState ControllerImpl::forward(const at::Tensor& x, const at::Tensor& reads,
                                        const ControllerState& before) {
  if (x.dim() != 2 || x.size(1) != options_.input)
    throw InvalidArgument("x: " + std::to_string(x.dim()) + " dimensions, width " +
                          std::to_string(x.dim() ? x.size(-1) : 0) + ", expected [batch, " +
                          std::to_string(options_.input) + "]");
  const at::Tensor given = at::cat({x, reads.flatten(1)}, 1);
  if (linear_) return {linear_(given).tanh(), {}};
  const auto [hidden, cell] = lstm_(given, std::make_tuple(before.hidden, before.cell));
  return {hidden, cell};
}

}  // namespace fovea::nn
