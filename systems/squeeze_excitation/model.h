// Squeeze-and-excitation networks, Hu, Shen & Sun 2018: a small network of four convolutions, a gate
// for each channel after every one.
//
//   z_c = mean_ij u_c,   s = σ(W2 ReLU(W1 z)),   x_c = s_c u_c
//
// A picture of several channels is gated first, and the gated channels are added up.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "fovea/nn/squeeze_excite.h"

namespace fovea::systems::squeeze_excitation {

struct Shape {
  int64_t inputs = 1, side = 28, classes = 10;  // a picture: channels, height and width
  int64_t channels = 32, layers = 4;
  int64_t reduction = 4;
  bool gated = true;      // false: the same network without gates, to compare with
  bool residual = false;  // x + gate(f(x)) from the second layer on
};

// One place where channels are gated.
struct Gated {
  std::string name;
  torch::Tensor before, gates;  // [B, C, H, W], [B, C]
};

// Multiply-adds of one picture, and weights: of the whole network and of its gates.
struct Cost {
  int64_t flops = 0, gate_flops = 0, parameters = 0, gate_parameters = 0;
};

class Model : public torch::nn::Module {
 public:
  explicit Model(const Shape& shape);

  torch::Tensor forward(const torch::Tensor& pictures);    // [B, inputs, H, W] -> [B, classes]
  std::vector<Gated> look(const torch::Tensor& pictures);  // every place with gates, in order
  Cost cost() const;

 private:
  torch::Tensor run(const torch::Tensor& pictures, std::vector<Gated>* seen);
  // What it gates goes to `seen`, if that is set. `maps` are u, or its maxima.
  torch::Tensor gate(size_t place, const std::string& name, const torch::Tensor& u,
                     const torch::Tensor& maps, std::vector<Gated>* seen);
  bool has_input_gate() const { return shape_.gated && shape_.inputs > 1; }

  const Shape shape_;
  std::vector<torch::nn::Conv2d> convolutions_;
  std::vector<torch::nn::BatchNorm2d> norms_;
  std::vector<nn::SqueezeExcite> gates_;
  torch::nn::Linear classifier_{nullptr};
};

}  // namespace fovea::systems::squeeze_excitation
