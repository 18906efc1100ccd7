// One layer of self-attention, and a classifier on its output at a word.
#pragma once

#include <torch/torch.h>

#include "data/formats/vocabulary.h"
#include "fovea/attend.h"
#include "systems/scaled_dot_product/sentences.h"

namespace fovea::systems::scaled_dot_product {

struct Model : torch::nn::Module {
  Model(int64_t vocabulary, int64_t width, int64_t key_width) : scale_width(key_width) {
    embedding = register_module(
        "embedding", torch::nn::Embedding(
                         torch::nn::EmbeddingOptions(vocabulary, width).padding_idx(data::kPad)));
    const auto linear = [&](int64_t to) {
      return torch::nn::Linear(torch::nn::LinearOptions(width, to).bias(false));
    };
    q_proj = register_module("q_proj", linear(key_width));
    k_proj = register_module("k_proj", linear(key_width));
    v_proj = register_module("v_proj", linear(width));
    out =
        register_module("out", torch::nn::Linear(width, static_cast<int64_t>(kAnimals.size()) + 1));
  }
  // [total, width]: every word looks at every word of its own sentence.
  torch::Tensor mixed(const torch::Tensor& x, const torch::Tensor& offsets) {
    return attend(q_proj(x).unsqueeze(1), k_proj(x).unsqueeze(1), v_proj(x).unsqueeze(1),
                  {.score = Dot{}, .structure = Ragged{offsets, offsets}})
        .squeeze(1);
  }
  const int64_t scale_width;
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear q_proj{nullptr}, k_proj{nullptr}, v_proj{nullptr}, out{nullptr};
};

}  // namespace fovea::systems::scaled_dot_product
