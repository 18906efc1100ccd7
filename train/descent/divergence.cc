#include "train/descent/divergence.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/descent/finite.h"
#include "train/descent/fit.h"

namespace fovea::train {
namespace {

// "nan" without its sign, which has no meaning.
double unsigned_nan(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

}  // namespace

void Divergence::check_loss(const torch::Tensor& loss, const Moment& now) {
  constexpr int64_t kSteps = 32;
  if (!loss.device().is_cpu() && (now.step - 1) % kSteps != 0) return;
  const double value = loss.item<double>();
  if (!std::isfinite(value)) stop(fmt::format("the loss is {}", unsigned_nan(value)), now);
  if (now.step == 1) first_loss_ = value;
}

void Divergence::check_mean_loss(double loss, const Moment& now) const {
  constexpr double kGrown = 1e6;
  if (!std::isfinite(loss)) stop(fmt::format("the loss is {}", unsigned_nan(loss)), now);
  if (loss > kGrown * std::max(1.0, std::fabs(first_loss_)))
    stop(fmt::format("the loss is {:.3g}, {:.3g} at the first step,", loss, first_loss_), now);
}

void Divergence::check_weights(const torch::nn::Module& model, const Moment& now) const {
  constexpr double kLargest = 1.8e19;
  if (const std::string name = not_finite(weights_of(model)); !name.empty())
    stop(fmt::format("weight '{}' is not finite", name), now);
  for (const auto& parameter : model.named_parameters()) {
    const torch::Tensor& weight = parameter.value();
    if (weight.numel() == 0 || !weight.is_floating_point()) continue;
    const double largest = weight.detach().abs().max().item<double>();
    if (largest > kLargest)
      stop(fmt::format("weight '{}' is {:.3g}", parameter.key(), largest), now);
  }
}

void Divergence::check_validation(const Metrics& metrics, const Moment& now) const {
  for (const auto& [name, value] : metrics)
    if (!std::isfinite(value))
      stop(fmt::format("validation {} is {}", name, unsigned_nan(value)), now);
}

void Divergence::stop(const std::string& what, const Moment& now) const {
  throw InvalidArgument(fmt::format(
      "{} at step {}, in epoch {}: training diverged; try a lower rate (--set rate=, now {}){}",
      what, now.step, now.epoch, recipe_.rate,
      recipe_.clip > 0 ? "" : " or clipping (--set clip=1)"));
}

}  // namespace fovea::train
