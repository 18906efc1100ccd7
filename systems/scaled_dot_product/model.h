// One layer of self-attention, and a classifier on its output at a word. Where the context decides,
// a layer before it gives each word what the words around it say.
#pragma once

#include <torch/torch.h>

#include "data/formats/vocabulary.h"
#include "fovea/attend.h"
#include "fovea/nn/transformer.h"

namespace fovea::systems::scaled_dot_product {

// Query, key and value of every word, in sentences that lie one after the other.
struct SelfAttention : torch::nn::Module {
  SelfAttention(int64_t width, int64_t key_width) {
    const auto linear = [&](int64_t to) {
      return torch::nn::Linear(torch::nn::LinearOptions(width, to).bias(false));
    };
    q_proj = register_module("q_proj", linear(key_width));
    k_proj = register_module("k_proj", linear(key_width));
    v_proj = register_module("v_proj", linear(width));
  }
  // [total, width]: every word looks at every word x of its own sentence; queries are made of
  // `asking`.
  torch::Tensor mixed(const torch::Tensor& asking, const torch::Tensor& x,
                      const torch::Tensor& offsets) {
    return attend(q_proj(asking).unsqueeze(1), k_proj(x).unsqueeze(1), v_proj(x).unsqueeze(1),
                  {.score = Dot{}, .structure = Ragged{offsets, offsets}})
        .squeeze(1);
  }
  torch::nn::Linear q_proj{nullptr}, k_proj{nullptr}, v_proj{nullptr};
};

struct ModelConfig {
  int64_t vocabulary, width, key_width, answers;
  bool context, positions;  // a layer before the one that is shown; where words stand is added
};

struct Model : SelfAttention {
  explicit Model(const ModelConfig& config)
      : SelfAttention(config.width, config.key_width),
        scale_width(config.key_width),
        positions(config.positions) {
    embedding = register_module(
        "embedding",
        torch::nn::Embedding(
            torch::nn::EmbeddingOptions(config.vocabulary, config.width).padding_idx(data::kPad)));
    out = register_module("out", torch::nn::Linear(config.width, config.answers));
    if (config.context)
      context = register_module("context",
                                std::make_shared<SelfAttention>(config.width, config.key_width));
  }
  // [total, width], the vectors of words; `places`: of each word in its sentence.
  torch::Tensor vectors(const torch::Tensor& tokens, const torch::Tensor& places) {
    torch::Tensor x = embedding(tokens);
    if (positions && places.numel() > 0)
      x = x + nn::position_encoding(places.max().item<int64_t>() + 1, x.size(1))
                  .to(x.device())
                  .index_select(0, places);
    return x;
  }
  // What queries are made of: the vectors, and with them what the context says. Keys and values stay
  // the words' own, so that what is meant can be read at its place only.
  torch::Tensor asking(const torch::Tensor& x, const torch::Tensor& offsets) {
    return context ? x + context->mixed(x, x, offsets) : x;
  }
  const int64_t scale_width;
  const bool positions;
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear out{nullptr};
  std::shared_ptr<SelfAttention> context;
};

}  // namespace fovea::systems::scaled_dot_product
