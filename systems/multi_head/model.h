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

#include <string>
#include <utility>

#include "fovea/nn/multi_head.h"
#include "systems/multi_head/sentences.h"

namespace fovea::systems::multi_head {

inline constexpr int64_t kClasses = 20;

struct Model : torch::nn::Module {
  // mix: "heads"; or a control: "average", every word in equal shares, or "convolution", the same
  // average after a convolution over three words, which knows neighbours and their order.
  Model(int64_t width, int64_t heads, std::string mixed_by = "heads") : mix(std::move(mixed_by)) {
    stem = register_module(
        "stem", torch::nn::Embedding(torch::nn::EmbeddingOptions(kStems, width).padding_idx(0)));
    suffix = register_module("suffix", torch::nn::Embedding(3, width));
    if (mix == "heads") {
      query = register_parameter("query", torch::randn({1, 1, width}));
      attention = register_module(
          "attention", nn::MultiHead(nn::MultiHeadOptions{.width = width, .heads = heads}));
    }
    out = register_module("out", torch::nn::Linear(width, 3 * kClasses));
    if (mix == "convolution")
      convolution = register_module(
          "convolution", torch::nn::Conv1d(torch::nn::Conv1dOptions(width, width, 3).padding(1)));
  }
  // What the one query takes from words [B, S, width] of the given lengths: [B, 1, width].
  torch::Tensor read(torch::Tensor words, const torch::Tensor& lengths) {
    if (mix == "heads")
      return attention->forward(query.expand({words.size(0), 1, -1}), words, words,
                                {.key_lengths = lengths});
    const torch::Tensor real = torch::arange(words.size(1))
                                   .unsqueeze(0)
                                   .lt(lengths.unsqueeze(1))
                                   .unsqueeze(2)
                                   .to(words.device());
    words = words * real;
    if (convolution) words = torch::relu(convolution(words.transpose(1, 2)).transpose(1, 2)) * real;
    return words.sum(1, true) / real.sum(1, true).clamp_min(1);
  }
  // The weights of words: [B, heads, S]; those of a control are equal.
  torch::Tensor looks(const torch::Tensor& words, const torch::Tensor& lengths) {
    if (mix == "heads")
      return attention
          ->weights(query.expand({words.size(0), 1, -1}), words, {.key_lengths = lengths})
          .weights.squeeze(2)
          .cpu();
    const torch::Tensor real = torch::arange(words.size(1)).unsqueeze(0).lt(lengths.unsqueeze(1));
    return (real / lengths.clamp_min(1).unsqueeze(1)).to(torch::kFloat32).unsqueeze(1);
  }
  const std::string mix;
  torch::nn::Conv1d convolution{nullptr};
  torch::nn::Embedding stem{nullptr}, suffix{nullptr};
  torch::Tensor query;
  nn::MultiHead attention{nullptr};
  torch::nn::Linear out{nullptr};
};

}  // namespace fovea::systems::multi_head
