// Deep Sets, Zaheer et al. 2017.
//
//   invariant    f(X) = ρ(sum_x φ(x))
//   equivariant  g(X Λ − 1·pool(X) Γ),  pool the maximum or the mean of each column
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "data/packed.h"
#include "fovea/nn/recurrent.h"

namespace fovea::systems::deep_sets {

// The sum of each set's elements, in double: a float sum would depend on the order. values [total,
// width] -> [sets, width].
torch::Tensor sum_of(const torch::Tensor& values, const torch::Tensor& offsets);

// The offsets of one set of all these elements.
torch::Tensor whole_set(const torch::Tensor& elements);

class Equivariant : public torch::nn::Module {
 public:
  Equivariant(int64_t inputs, int64_t outputs, std::string pool);
  torch::Tensor forward(const torch::Tensor& x,
                        const torch::Tensor& offsets);  // [total, inputs] -> [total, outputs]

 private:
  const std::string pool_;
  torch::nn::Linear lambda_{nullptr}, gamma_{nullptr};
};

// φ of a digit: two convolutions and two layers. The last one saturates, so that the summands are
// nearly discrete.
class DigitFeatures : public torch::nn::Module {
 public:
  DigitFeatures(int64_t side, int64_t filters, int64_t width);
  torch::Tensor forward(const torch::Tensor& pictures);  // [total, side * side] -> [total, width]

 private:
  const int64_t side_, width_;
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  torch::nn::Linear fc1_{nullptr}, fc2_{nullptr};
};

// The sum of the digits of a set. Beside it is a GRU that reads the same φ(x) one after another.
class DigitSum : public torch::nn::Module {
 public:
  struct Shape {
    int64_t side = 28, filters = 16, width = 32, recurrent = 64;
    std::string rho = "linear";
  };
  explicit DigitSum(const Shape& shape);

  torch::Tensor features(const torch::Tensor& pictures) { return phi_->forward(pictures); }
  torch::Tensor sums(const torch::Tensor& features, const torch::Tensor& offsets);  // [sets]
  torch::Tensor gru_sums(const torch::Tensor& features, const torch::Tensor& offsets);
  // What one element adds: ρ(φ(x)) − ρ(0); exact if ρ is linear.
  torch::Tensor contributions(const torch::Tensor& features);  // [total]
  bool rho_is_linear() const { return shape_.rho == "linear"; }

 private:
  torch::Tensor rho(const torch::Tensor& pooled);
  const Shape shape_;
  std::shared_ptr<DigitFeatures> phi_;
  torch::nn::Linear rho1_{nullptr}, rho2_{nullptr}, read_{nullptr};
  nn::Recurrent gru_{nullptr};
};

// Three equivariant layers, the maximum over the points, two layers more.
class CloudClassifier : public torch::nn::Module {
 public:
  CloudClassifier(int64_t width, int64_t classes, const std::string& pool, double dropout);
  torch::Tensor points(const data::Packed& clouds);   // [total, width]: what is pooled
  torch::Tensor forward(const data::Packed& clouds);  // [clouds, classes]

 private:
  const double dropout_;
  std::vector<std::shared_ptr<Equivariant>> layers_;
  torch::nn::Linear hidden_{nullptr}, out_{nullptr};
};

}  // namespace fovea::systems::deep_sets
