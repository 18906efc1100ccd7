#include "systems/mixture_of_experts/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>

namespace fovea::systems::mixture_of_experts {

Experts::Experts(const nn::MixtureOfExpertsOptions& options) {
  experts = register_module("experts", nn::MixtureOfExperts(options));
  loads = register_buffer("loads", torch::zeros({kEpochs, options.experts}));
}

torch::Tensor Experts::balance(int64_t epoch) {
  const nn::Mixed& mixed = experts->last();
  const auto& options = experts->options();
  // If all experts are selected, counts of tokens are all equal, so their shares are used.
  if (epoch < kEpochs)
    loads[epoch] +=
        options.k < options.experts ? mixed.load : dense_gates(mixed, options.experts).sum(0);
  return mixed.importance_loss + mixed.load_loss;
}

torch::Tensor dense_gates(const nn::Mixed& mixed, int64_t experts) {
  return torch::zeros({mixed.gates.size(0), experts}, mixed.gates.options())
      .scatter(1, mixed.chosen, mixed.gates.detach());
}

double largest_over_mean(const torch::Tensor& load) {
  const torch::Tensor tokens = load.to(torch::kFloat64);
  return tokens.max().item<double>() / std::max(1e-12, tokens.mean().item<double>());
}

double overflow_share(int64_t overflow, const torch::Tensor& load) {
  return static_cast<double>(overflow) / std::max(1.0, load.sum().item<double>());
}

nn::MixtureOfExpertsOptions mixture_options(const OptionValues& options) {
  const int64_t experts = options.integer("experts"), k = options.integer("k");
  if (k > experts)
    throw UsageError(
        fmt::format("--set k={}: expected 1 to {}, the number of experts", k, experts));
  nn::MixtureOfExpertsOptions out{.hidden = options.integer("hidden"),
                                  .experts = experts,
                                  .k = k,
                                  // If all experts are selected, there is nothing to explore.
                                  .noise = options.flag("noise") && k < experts};
  if (options.number("capacity") >= 0) out.capacity = options.number("capacity");
  return out;
}

CurveModel::CurveModel(int64_t inputs, const OptionValues& options)
    : Experts([&] {
        nn::MixtureOfExpertsOptions out = mixture_options(options);
        out.width = inputs;
        out.output = 1;
        out.gate_width = inputs * std::max<int64_t>(1, options.integer("bumps")) + 1;
        return out;
      }()),
      bumps_(options.integer("bumps")) {
  first_error = register_buffer("first_error", torch::zeros({}));
}

torch::Tensor CurveModel::gate_input(const torch::Tensor& x) const {
  constexpr double kSteep =
      3;  // so that a gate of moderate weights can change from one expert to another
  const torch::Tensor one = torch::ones({x.size(0), 1}, x.options());
  if (bumps_ == 0) return kSteep * torch::cat({x, one}, 1);
  const double width = 2.0 / static_cast<double>(bumps_);
  const torch::Tensor centres = torch::arange(bumps_, x.options()) * width + (width / 2 - 1);
  const torch::Tensor apart = (x.unsqueeze(2) - centres) / width;
  return torch::cat({torch::exp(-0.5 * apart.square()).flatten(1), one}, 1);
}

nn::Mixed CurveModel::mix(const torch::Tensor& x) {
  experts->forward(x, gate_input(x));
  return experts->last();
}

PictureModel::PictureModel(int64_t channels, int64_t side, int64_t classes,
                           const OptionValues& options)
    : Experts([&] {
        nn::MixtureOfExpertsOptions out = mixture_options(options);
        out.width = options.integer("width");
        return out;
      }()) {
  const int64_t filters = options.integer("filters"), width = options.integer("width"),
                left = std::max<int64_t>(1, side / 4);
  using torch::nn::Conv2dOptions;
  conv1_ =
      register_module("conv1", torch::nn::Conv2d(Conv2dOptions(channels, filters, 3).padding(1)));
  conv2_ = register_module("conv2",
                           torch::nn::Conv2d(Conv2dOptions(filters, 2 * filters, 3).padding(1)));
  embed_ = register_module("embed", torch::nn::Linear(2 * filters * left * left, width));
  classifier_ = register_module("classifier", torch::nn::Linear(width, classes));
}

torch::Tensor PictureModel::forward(const torch::Tensor& pictures) {
  torch::Tensor x = torch::max_pool2d(torch::relu(conv1_(pictures)), 2);
  x = torch::max_pool2d(torch::relu(conv2_(x)), 2);
  return classifier_(torch::relu(experts(torch::relu(embed_(x.flatten(1))))));
}

}  // namespace fovea::systems::mixture_of_experts
