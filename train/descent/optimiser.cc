#include "train/descent/optimiser.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <limits>

#include "fovea/error.h"

namespace fovea::train {
namespace {

// RMSProp (Tieleman & Hinton 2012), as torch.optim has it; uncentred.
void rms_step(at::Tensor& p, const at::Tensor& g, at::Tensor& square, at::Tensor& buffer,
              const Recipe& r, double rate) {
  square.mul_(r.beta2).addcmul_(g, g, 1 - r.beta2);
  const at::Tensor root = square.sqrt().add_(r.epsilon);
  if (r.momentum > 0) {
    buffer.mul_(r.momentum).addcdiv_(g, root);
    p.add_(buffer, -rate);
  } else {
    p.addcdiv_(g, root, -rate);
  }
}

// Adadelta (Zeiler 2012): rho is beta1.
void adadelta_step(at::Tensor& p, const at::Tensor& g, at::Tensor& square, at::Tensor& moved,
                   const Recipe& r, double rate) {
  square.mul_(r.beta1).addcmul_(g, g, 1 - r.beta1);
  const at::Tensor delta = moved.add(r.epsilon).sqrt_().div_(square.add(r.epsilon).sqrt_()).mul_(g);
  moved.mul_(r.beta1).addcmul_(delta, delta, 1 - r.beta1);
  p.add_(delta, -rate);
}

// ATen refuses a rate that the type of the weights cannot hold. So such a rate becomes infinite:
// the weights are then not finite, which training reports.
double in_type_of(const at::Tensor& weight, double rate) {
  const bool beyond =
      weight.scalar_type() == at::kFloat && rate > std::numeric_limits<float>::max();
  return beyond ? std::numeric_limits<double>::infinity() : rate;
}

}  // namespace

Optimiser::Slots Optimiser::new_slots(const torch::Tensor& p) {
  return {torch::zeros_like(p, torch::MemoryFormat::Preserve).detach(),
          torch::zeros_like(p, torch::MemoryFormat::Preserve).detach(),
          torch::zeros({}, p.options().dtype(torch::kFloat32).requires_grad(false))};
}

Optimiser::Optimiser(const std::vector<ParameterGroup>& groups, const Recipe& recipe,
                     const SlotsOf& slots_of)
    : recipe_(recipe) {
  for (const ParameterGroup& given : groups) {
    Group group{given, {}, {}, {}};
    for (const torch::Tensor& p : given.parameters) {
      Slots slots = slots_of(p);
      group.first.push_back(std::move(slots.first));
      group.second.push_back(std::move(slots.second));
      group.steps.push_back(std::move(slots.steps));
    }
    groups_.push_back(std::move(group));
  }
}

Optimiser::Active Optimiser::active(const Group& group) {
  Active out;
  for (size_t i = 0; i < group.given.parameters.size(); ++i) {
    const torch::Tensor& p = group.given.parameters[i];
    if (!p.grad().defined()) continue;
    if (p.grad().is_sparse())
      throw Unsupported("optimiser: a sparse gradient, expected a dense one");
    out.parameters.push_back(p);
    out.gradients.push_back(p.grad());
    out.first.push_back(group.first[i]);
    out.second.push_back(group.second[i]);
    out.steps.push_back(group.steps[i]);
  }
  return out;
}

void Optimiser::update(Active& a, double rate, double weight_decay) {
  const Recipe& r = recipe_;
  at::_foreach_add_(a.steps, 1);
  if (r.optimiser == "adam") {
    at::_fused_adam_(a.parameters, a.gradients, a.first, a.second, {}, a.steps, rate, r.beta1,
                     r.beta2, weight_decay, r.epsilon, false, false);
    return;
  }
  if (r.optimiser == "adamw") {
    at::_fused_adamw_(a.parameters, a.gradients, a.first, a.second, {}, a.steps, rate, r.beta1,
                      r.beta2, weight_decay, r.epsilon, false, false);
    return;
  }
  if (weight_decay > 0) a.gradients = at::_foreach_add(a.gradients, a.parameters, weight_decay);
  if (r.optimiser == "sgd") {
    if (r.momentum > 0) {
      // From zero buffers, buffer = momentum * 0 + g: the first step is torch.optim's too.
      at::_foreach_mul_(a.first, r.momentum);
      at::_foreach_add_(a.first, a.gradients);
      at::_foreach_add_(a.parameters, a.first, -rate);
    } else {
      at::_foreach_add_(a.parameters, a.gradients, -rate);
    }
  } else if (r.optimiser == "adagrad") {
    at::_foreach_addcmul_(a.first, a.gradients, a.gradients, 1);
    for (size_t i = 0; i < a.parameters.size(); ++i)
      a.parameters[i].addcdiv_(a.gradients[i], a.first[i].sqrt().add_(r.epsilon), -rate);
  } else {
    for (size_t i = 0; i < a.parameters.size(); ++i) {
      if (r.optimiser == "rmsprop")
        rms_step(a.parameters[i], a.gradients[i], a.first[i], a.second[i], r, rate);
      else
        adadelta_step(a.parameters[i], a.gradients[i], a.first[i], a.second[i], r, rate);
    }
  }
}

void Optimiser::step(double rate_factor) {
  const torch::NoGradGuard guard;
  for (Group& group : groups_) {
    Active a = active(group);
    if (a.parameters.empty()) continue;
    const double weight_decay =
        group.given.weight_decay < 0 ? recipe_.weight_decay : group.given.weight_decay;
    const double rate = recipe_.rate * rate_factor * group.given.rate_factor;
    update(a, in_type_of(a.parameters.front(), rate), weight_decay);
  }
}

void Optimiser::zero_grad() {
  for (Group& group : groups_)
    for (torch::Tensor& p : group.given.parameters) p.mutable_grad() = torch::Tensor();
}

std::vector<torch::Tensor> Optimiser::gradients() const {
  std::vector<torch::Tensor> out;
  for (const Group& group : groups_)
    for (const torch::Tensor& p : group.given.parameters)
      if (p.grad().defined()) out.push_back(p.grad());
  return out;
}

std::vector<torch::Tensor> Optimiser::norms() const {
  const torch::NoGradGuard guard;
  const std::vector<torch::Tensor> all = gradients();
  return all.empty() ? all : at::_foreach_norm(all, 2);
}

torch::Tensor Optimiser::clip(double most) {
  const std::vector<torch::Tensor> own = norms();
  return own.empty() ? torch::zeros({}) : clip(most, torch::stack(own));
}

torch::Tensor Optimiser::clip(double most, const torch::Tensor& norms) {
  const torch::NoGradGuard guard;
  const torch::Tensor norm = norms.norm();
  const std::vector<torch::Tensor> own = gradients();
  if (!own.empty()) at::_foreach_mul_(own, (most / (norm + 1e-6)).clamp_max(1.0));
  return norm;
}

void Optimiser::make(double rate_factor, double most, const std::string&) {
  if (most > 0) clip(most);
  step(rate_factor);
}

std::map<std::string, torch::Tensor> Optimiser::state() const {
  std::map<std::string, torch::Tensor> out;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (size_t i = 0; i < groups_[g].steps.size(); ++i) {
      out[fmt::format("{}.{}.first", g, i)] = groups_[g].first[i];
      out[fmt::format("{}.{}.second", g, i)] = groups_[g].second[i];
      out[fmt::format("{}.{}.steps", g, i)] = groups_[g].steps[i];
    }
  }
  return out;
}

void Optimiser::restore(const std::map<std::string, torch::Tensor>& state) {
  const torch::NoGradGuard guard;
  for (const auto& [name, slot] : this->state()) {
    const auto found = state.find(name);
    if (found == state.end() || found->second.sizes() != slot.sizes())
      throw InvalidArgument(
          fmt::format("optimiser state: {} is missing or of another shape", name));
    torch::Tensor to = slot;
    to.copy_(found->second);
  }
}

}  // namespace fovea::train
