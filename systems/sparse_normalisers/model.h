// The measurements: for each system and each normaliser the system's figure, its share of weights
// that are exactly zero, and how often it looked at the right place.
#pragma once

#include <torch/nn/module.h>

#include <array>
#include <string>

#include "fovea/attend.h"

namespace fovea::systems::sparse_normalisers {

struct Compared {
  const char* name;  // as `--set normaliser=` has it
  const char* label;
};
inline constexpr std::array<Compared, 3> kCompared = {
    {{"softmax", "softmax"}, {"entmax", "1.5-entmax"}, {"sparsemax", "sparsemax"}}};

struct Model : torch::nn::Module {
  explicit Model(int64_t systems);

  // [systems, normalisers]; below 0: not known.
  torch::Tensor figures, zeros, hits;
};

// Rows of scores [..., n] under one of them.
torch::Tensor weights_of(const torch::Tensor& scores, const Compared& normaliser);

}  // namespace fovea::systems::sparse_normalisers
