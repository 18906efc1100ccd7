#include "systems/squeeze_excitation/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

namespace fovea::systems::squeeze_excitation {
namespace {

// The maximum over 2 x 2 after every second layer, as long as the picture is large enough.
bool halved_after(int64_t layer, int64_t side) { return layer % 2 == 1 && side > 1; }

}  // namespace

Model::Model(const Shape& shape) : shape_(shape) {
  const auto add_gate = [&](const std::string& name, const nn::SqueezeExciteOptions& options) {
    gates_.push_back(register_module(name, nn::SqueezeExcite(options)));
  };
  // Four units a channel: a single one that starts below zero would lose its channel for ever.
  if (has_input_gate())
    add_gate("input_gate", {.channels = shape.inputs, .units = 4 * shape.inputs});
  int64_t from = 1, side = shape.side;
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    convolutions_.push_back(register_module(
        fmt::format("conv{}", layer + 1),
        torch::nn::Conv2d(
            torch::nn::Conv2dOptions(from, shape.channels, 3).padding(1).bias(false))));
    norms_.push_back(
        register_module(fmt::format("norm{}", layer + 1), torch::nn::BatchNorm2d(shape.channels)));
    if (shape.gated)
      add_gate(fmt::format("gate{}", layer + 1),
               {.channels = shape.channels, .reduction = shape.reduction});
    from = shape.channels;
    if (halved_after(layer, side)) side /= 2;
  }
  classifier_ = register_module("classifier", torch::nn::Linear(from * side * side, shape.classes));
}

torch::Tensor Model::gate(size_t place, const std::string& name, const torch::Tensor& u,
                          const torch::Tensor& maps, std::vector<Gated>* seen) {
  if (!shape_.gated) return maps;
  const torch::Tensor scores = gates_[place]->scores(u);
  if (seen) seen->push_back({.name = name, .before = u, .gates = scores.sigmoid()});
  return nn::SqueezeExciteImpl::gated(maps, scores);
}

torch::Tensor Model::run(const torch::Tensor& pictures, std::vector<Gated>* seen) {
  torch::Tensor x = pictures;
  if (shape_.inputs > 1) x = gate(0, "picture", x, x, seen).mean(1, /*keepdim=*/true);
  for (size_t layer = 0; layer < convolutions_.size(); ++layer) {
    const bool added = shape_.residual && layer > 0,
               halve = halved_after(static_cast<int64_t>(layer), x.size(2));
    const auto maxima = [&](const torch::Tensor& m) { return halve ? torch::max_pool2d(m, 2) : m; };
    torch::Tensor u = norms_[layer](convolutions_[layer](x));
    if (!added) u = torch::relu_(u);  // backward of a norm does not read u
    const auto gated = [&](const torch::Tensor& maps) {
      return gate(layer + has_input_gate(), fmt::format("layer {}", layer + 1), u, maps, seen);
    };
    x = added ? maxima(torch::relu(x + gated(u))) : gated(maxima(u));
  }
  return classifier_(x.flatten(1));
}

torch::Tensor Model::forward(const torch::Tensor& pictures) { return run(pictures, nullptr); }

std::vector<Gated> Model::look(const torch::Tensor& pictures) {
  std::vector<Gated> seen;
  run(pictures, &seen);
  return seen;
}

Cost Model::cost() const {
  Cost out;
  int64_t side = shape_.side;
  for (const torch::Tensor& p : parameters()) out.parameters += p.numel();
  const auto add_gate = [&](const nn::SqueezeExcite& gate, int64_t pixels) {
    const int64_t channels = gate->options().channels,
                  weights = gate->fc1->weight.numel() + gate->fc2->weight.numel();
    out.gate_parameters += weights;
    out.gate_flops += 2 * channels * pixels + weights;  // the mean, the product, two small layers
  };
  if (has_input_gate()) add_gate(gates_[0], side * side);
  for (size_t layer = 0; layer < convolutions_.size(); ++layer) {
    out.flops += convolutions_[layer]->weight.numel() * side * side;
    if (shape_.gated) add_gate(gates_[layer + (has_input_gate() ? 1 : 0)], side * side);
    if (halved_after(static_cast<int64_t>(layer), side)) side /= 2;
  }
  out.flops += classifier_->weight.numel() + out.gate_flops;
  return out;
}

}  // namespace fovea::systems::squeeze_excitation
