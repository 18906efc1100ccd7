// What was measured: the seconds of three layers at several lengths.
#pragma once

#include <torch/torch.h>

#include <array>

namespace fovea::systems::cost {

inline constexpr std::array kLayers = {"self-attention", "LSTM", "convolution"};

struct Model : torch::nn::Module {
  // `points` lengths; layers of width d, a convolution of k positions.
  Model(int64_t points, int64_t d, int64_t k);
  double operations(size_t layer, int64_t length) const;
  // The length from which attention takes longer than the LSTM; NaN if it never does.
  double crossing() const;

  torch::Tensor sizes, seconds, threads;  // [points], [3, points], [1]
  const int64_t d, k;
};

}  // namespace fovea::systems::cost
