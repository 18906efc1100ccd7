// Mixtures of experts, Jacobs, Jordan, Nowlan & Hinton 1991; Shazeer et al. 2017: nn::MixtureOfExperts
// on a curve, and between the layers of a small network for pictures.
//
//   y = Σ_i g_i E_i(x);   dense: g = softmax(x W_g);   sparse: g = softmax over the k largest of
//   H_i = (x W_g)_i + N(0, 1) softplus((x W_n)_i)
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "fovea/nn/mixture_of_experts.h"
#include "train/option_values.h"

namespace fovea::systems::mixture_of_experts {

// What the two models share: the experts, and how many tokens chose each while they learned.
class Experts : public torch::nn::Module {
 public:
  static constexpr int64_t kEpochs = 64;  // the loads of the first 64 epochs are kept

  explicit Experts(const nn::MixtureOfExpertsOptions& options);

  // Balance losses of the last batch, whose load is then added to that of the epoch.
  torch::Tensor balance(int64_t epoch);

  nn::MixtureOfExperts experts{nullptr};
  torch::Tensor loads;  // [kEpochs, experts]; where every token selects all, the sums of the gates
};

// [items, experts]: the gates, 0 for experts not selected.
torch::Tensor dense_gates(const nn::Mixed& mixed, int64_t experts);
// The busiest expert's load over the mean.
double largest_over_mean(const torch::Tensor& load);
// The share of the load that was beyond the capacity.
double overflow_share(int64_t overflow, const torch::Tensor& load);

// From the options of the system; UsageError if there are fewer experts than an item selects.
nn::MixtureOfExpertsOptions mixture_options(const OptionValues& options);

// Numbers to a number. Experts see x between -1 and 1. The gate sees x and a constant, or bumps
// along each input, with which it can treat each place separately.
class CurveModel : public Experts {
 public:
  CurveModel(int64_t inputs, const OptionValues& options);
  nn::Mixed mix(const torch::Tensor& x);

  torch::Tensor first_error;  // []: of what was learned first, before the rest was; see `order`

 private:
  torch::Tensor gate_input(const torch::Tensor& x) const;
  const int64_t bumps_;
};

// Two convolutions and a layer turn a picture into a token; a layer turns the mixture's output into
// a class.
class PictureModel : public Experts {
 public:
  PictureModel(int64_t channels, int64_t side, int64_t classes, const OptionValues& options);
  torch::Tensor forward(const torch::Tensor& pictures);  // [B, channels, H, W] -> [B, classes]

 private:
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  torch::nn::Linear embed_{nullptr}, classifier_{nullptr};
};

}  // namespace fovea::systems::mixture_of_experts
