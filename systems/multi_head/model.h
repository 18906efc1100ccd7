// Multi-head attention (Vaswani et al. 2017) answering "who did what to whom" in one look.
//
//   Z_h = attend(q W_h^Q, X W_h^K, X W_h^V),   O = [Z_1 … Z_H] W^O
//
// Sentences have free word order; a suffix marks who acts (-a) and who is acted on (-o). A word's
// vector is the sum of the vectors of its stem and its suffix. One query reads the sentence, and one
// linear map turns its output into three answers. A head gives a mean of words; a mean of two nouns
// hardly shows which noun had which suffix. Three heads can look at three words.
#pragma once

#include <torch/torch.h>

#include "fovea/nn/multi_head.h"
#include "systems/multi_head/sentences.h"

namespace fovea::systems::multi_head {

inline constexpr int64_t kClasses = 20;

struct Model : torch::nn::Module {
  Model(int64_t width, int64_t heads) {
    stem = register_module(
        "stem", torch::nn::Embedding(torch::nn::EmbeddingOptions(kStems, width).padding_idx(0)));
    suffix = register_module("suffix", torch::nn::Embedding(3, width));
    query = register_parameter("query", torch::randn({1, 1, width}));
    attention = register_module(
        "attention", nn::MultiHead(nn::MultiHeadOptions{.width = width, .heads = heads}));
    out = register_module("out", torch::nn::Linear(width, 3 * kClasses));
  }
  torch::nn::Embedding stem{nullptr}, suffix{nullptr};
  torch::Tensor query;
  nn::MultiHead attention{nullptr};
  torch::nn::Linear out{nullptr};
};

}  // namespace fovea::systems::multi_head
