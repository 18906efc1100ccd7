// φ of each item, a pooling, ρ of what it gives.
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>

#include "data/packed.h"
#include "systems/pooling/pooling.h"

namespace fovea::systems::pooling {

struct Model : torch::nn::Module {
  Model(int64_t inputs, int64_t width, std::string pooling) : how(std::move(pooling)) {
    phi1 = register_module("phi1", torch::nn::Linear(inputs, width));
    phi2 = register_module("phi2", torch::nn::Linear(width, width));
    rho = register_module("rho", torch::nn::Linear(width, 2));
    if (how == "attention") query = register_parameter("query", torch::randn({width}) * 0.1);
    if (how == "context") context = register_module("context", torch::nn::Linear(width, width));
  }
  torch::Tensor phi(const torch::Tensor& x) {
    return torch::relu(phi2(torch::relu(phi1(x))));
  }  // [total, width]
  bool attends() const { return query.defined() || context; }
  // What attention asks: one learned query [width] for all bags, or for each bag [bags, width] what
  // it makes of its own mean.
  torch::Tensor asked(const torch::Tensor& features, const torch::Tensor& offsets) {
    return context ? context(pool("mean", features, offsets)) : query;
  }
  torch::Tensor forward(const data::Packed& bag) {
    const torch::Tensor features = phi(bag.values);
    return rho(
        pool(attends() ? "attention" : how, features, bag.offsets, asked(features, bag.offsets)));
  }

  const std::string how;
  torch::nn::Linear phi1{nullptr}, phi2{nullptr}, rho{nullptr}, context{nullptr};
  torch::Tensor query;
};

}  // namespace fovea::systems::pooling
