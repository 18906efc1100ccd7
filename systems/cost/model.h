// What was measured: the seconds and the memory of three layers at several lengths, or widths.
#pragma once

#include <torch/torch.h>

#include <array>
#include <string>

namespace fovea::systems::cost {

inline constexpr std::array kLayers = {"self-attention", "LSTM", "convolution"};

struct Model : torch::nn::Module {
  // As many points as were measured; over the length n or the width d; a convolution of k positions.
  Model(int64_t points, std::string sweep, int64_t k);
  double operations(size_t layer, int64_t point) const;
  // Where attention begins to take longer than the LSTM as n grows, or the LSTM longer than
  // attention as d grows; NaN if it never does.
  double crossing() const;
  // The same by counting: n = 4d.
  double predicted() const;
  // What is swept: lengths or widths.
  const torch::Tensor& swept() const { return over == "n" ? lengths : widths; }

  const std::string over;
  torch::Tensor lengths, widths;  // [points]
  torch::Tensor seconds, bytes;   // [3, points]; bytes are NaN where they are not known
  torch::Tensor threads;          // [1]
  const int64_t k;
};

}  // namespace fovea::systems::cost
