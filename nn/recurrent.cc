#include "fovea/nn/recurrent.h"

#include <ATen/ATen.h>
#include <torch/nn/utils/rnn.h>

#include "fovea/error.h"
#include "nn/forget_gate.h"

namespace fovea::nn {

RecurrentImpl::RecurrentImpl(const RecurrentOptions& options) : options_(options) {
  if (options.input <= 0 || options.width <= 0 || options.layers <= 0) {
    throw InvalidArgument("recurrent: input, width and layers expected to be positive");
  }
  reset();
}

void RecurrentImpl::reset() {
  const double dropout = options_.layers > 1
                             ? options_.dropout
                             : 0;  // libtorch warns where there is no layer to drop between
  if (options_.cell == Cell::kGru) {
    gru_ =
        register_module("rnn", torch::nn::GRU(torch::nn::GRUOptions(options_.input, options_.width)
                                                  .num_layers(options_.layers)
                                                  .bidirectional(options_.bidirectional)
                                                  .dropout(dropout)
                                                  .batch_first(true)));
  } else {
    lstm_ = register_module("rnn",
                            torch::nn::LSTM(torch::nn::LSTMOptions(options_.input, options_.width)
                                                .num_layers(options_.layers)
                                                .bidirectional(options_.bidirectional)
                                                .dropout(dropout)
                                                .batch_first(true)));
    open_forget_gate(*lstm_, options_.width);
  }
}

Encoded RecurrentImpl::forward(const at::Tensor& x, const at::Tensor& lengths) {
  namespace rnn = torch::nn::utils::rnn;
  const auto packed = rnn::pack_padded_sequence(x, lengths.to(at::kCPU, at::kLong),
                                                /*batch_first=*/true, /*enforce_sorted=*/false);
  Encoded out;
  const auto unpacked = [&](const rnn::PackedSequence& states) {
    return std::get<0>(
        rnn::pad_packed_sequence(states, /*batch_first=*/true, /*padding_value=*/0.0, x.size(1)));
  };
  if (gru_) {
    const auto [states, hidden] = gru_->forward_with_packed_input(packed);
    out.states = unpacked(states);
    out.hidden = hidden;
  } else {
    const auto [states, last] = lstm_->forward_with_packed_input(packed);
    out.states = unpacked(states);
    std::tie(out.hidden, out.cells) = last;
  }
  const int64_t last = out.hidden.size(0);
  out.forward = out.hidden[last - (options_.bidirectional ? 2 : 1)];
  if (options_.bidirectional) out.backward = out.hidden[last - 1];
  return out;
}

}  // namespace fovea::nn
