// Any score, any normaliser and any structure between projected queries and keys.
#pragma once

#include <torch/torch.h>

#include <string>

#include "fovea/attend.h"
#include "systems/general/memories.h"
#include "systems/normaliser_option.h"
#include "train/option_values.h"

namespace fovea::systems::general {

inline constexpr int64_t kInner = 32;  // width of the projected query and key

struct Model : torch::nn::Module {
  explicit Model(const OptionValues& options)
      : score(options.text("score")), normaliser(options.text("normaliser")) {
    q_proj = register_module("q_proj",
                             torch::nn::Linear(torch::nn::LinearOptions(kKey, kInner).bias(false)));
    // The bias matters only to the additive score. Without it w'tanh(…) is an odd function, which
    // cannot distinguish q = k from q = -k.
    k_proj = register_module("k_proj", torch::nn::Linear(kKey, kInner));
    if (score == "additive") weight = register_parameter("weight", torch::randn({kInner}) / 4);
    if (score == "bilinear")
      weight = register_parameter("weight", torch::randn({kInner, kInner}) / kInner);
    if (score == "cosine") weight = register_parameter("beta", torch::full({1}, 10.0));
    if (score == "kernel") weight = register_parameter("bandwidth", torch::ones({1}));
  }

  Choices choices(const Structure& sees) const {
    Score chosen = Dot{};
    if (score == "additive") chosen = Additive{weight};
    if (score == "bilinear") chosen = Bilinear{weight, std::nullopt};
    if (score == "cosine") chosen = Cosine{weight};
    if (score == "kernel") chosen = Kernel{KernelName::kGaussian, weight.abs() + 1e-3, {}};
    return {.score = chosen,
            .normaliser = normaliser_named(normaliser == "top_k" ? "top_k:k=4" : normaliser),
            .structure = sees};
  }
  torch::Tensor query(const torch::Tensor& q) {
    return q_proj(q).unsqueeze(1);
  }  // [total, 1 head, kInner]
  torch::Tensor key(const torch::Tensor& k) { return k_proj(k).unsqueeze(1); }

  const std::string score, normaliser;
  torch::nn::Linear q_proj{nullptr}, k_proj{nullptr};
  torch::Tensor weight;
};

}  // namespace fovea::systems::general
