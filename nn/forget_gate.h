// An LSTM remembers at first: its forget bias starts at 1.
#pragma once

#include <torch/nn.h>

#include <cstdint>

namespace fovea::nn {

// Gates are stacked i, f, g, o; two biases add up, so one of them takes the 1.
inline void open_forget_gate(torch::nn::Module& lstm, int64_t width) {
  const torch::NoGradGuard no_grad;
  for (auto& p : lstm.named_parameters()) {
    if (p.key().starts_with("bias_ih")) p.value().slice(0, width, 2 * width).fill_(1);
    if (p.key().starts_with("bias_hh")) p.value().slice(0, width, 2 * width).zero_();
  }
}

}  // namespace fovea::nn
