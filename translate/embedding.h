// Token embeddings with the rules all models share: the PAD row is zero and stays so.
#pragma once

#include <torch/nn.h>

#include "translate/codec.h"

namespace fovea::translate {

inline torch::nn::Embedding token_embedding(int64_t vocabulary, int64_t width, double deviation) {
  torch::nn::Embedding embedding(torch::nn::EmbeddingOptions(vocabulary, width).padding_idx(kPad));
  const torch::NoGradGuard no_grad;
  embedding->weight.normal_(0, deviation);
  embedding->weight[kPad].zero_();
  return embedding;
}

}  // namespace fovea::translate
