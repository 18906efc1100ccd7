// What was measured: the seconds and the memory of three layers at several lengths, or widths; with
// the lengths, for one width or several.
#pragma once

#include <torch/torch.h>

#include <array>
#include <string>

namespace fovea::systems::cost {

inline constexpr std::array kLayers = {"self-attention", "LSTM", "convolution"};

struct Model : torch::nn::Module {
  // As many points as were measured, in `rows` sweeps over the length n or the width d; a
  // convolution of k positions.
  Model(int64_t rows, int64_t points, std::string sweep, int64_t k);
  int64_t rows() const { return lengths.size(0); }
  double operations(size_t layer, int64_t row, int64_t point) const;
  // Where attention begins to take longer than the LSTM as n grows, or the LSTM longer than
  // attention as d grows; NaN if it never does.
  double crossing(int64_t row) const;
  // The same by counting: n = 4d.
  double predicted(int64_t row) const;
  // What is swept: lengths or widths.
  torch::Tensor swept(int64_t row) const { return (over == "n" ? lengths : widths)[row]; }

  const std::string over;
  torch::Tensor lengths, widths;  // [rows, points]
  torch::Tensor seconds, bytes;   // [rows, 3, points]; bytes are NaN where they are not known
  torch::Tensor threads;          // [1]
  const int64_t k;
};

}  // namespace fovea::systems::cost
