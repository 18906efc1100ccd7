// The Transformer of Vaswani et al. 2017 as a translation model.
#pragma once

#include <mutex>

#include "fovea/nn/transformer.h"
#include "translate/model.h"

namespace fovea::systems {

struct TransformerConfig {
  nn::TransformerOptions stacks;
  double embedding_dropout = 0.1;
  bool tie_embeddings = true;  // target embedding = output projection, and = source embedding where
                               // the vocabulary is shared
  int64_t align_layer =
      -1;                   // whose cross attention is the alignment; negative counts from the last
  int64_t align_head = -1;  // -1: the mean over heads
};

class TransformerModel : public translate::Model {
 public:
  TransformerModel(const TransformerConfig& config, const translate::Vocabularies& vocabularies);

  at::Tensor logits(const translate::Batch& batch) override;
  std::unique_ptr<nn::StepModel> start(const translate::Batch& sources,
                                       translate::Want want) override;
  at::Tensor alignment(const translate::Batch& batch) override;
  std::vector<translate::AttentionMaps> maps(const translate::Batch& batch) override;

 private:
  class Steps;
  at::Tensor embed(torch::nn::Embedding& embedding, const at::Tensor& tokens,
                   int64_t first_position);
  at::Tensor encode(const translate::Batch& batch);
  at::Tensor project(const at::Tensor& hidden);  // to the target vocabulary
  // [layers, B, heads, T, S]
  at::Tensor cross_weights(const translate::Batch& batch);

  TransformerConfig config_;
  double scale_;  // sqrt(width), on embeddings at the input only
  // The first `count` or more, made once; several searches may ask at a time.
  at::Tensor positions(int64_t count, const at::Device& device);
  at::Tensor positions_;  // grown as needed
  std::mutex growing_;
  torch::nn::Embedding source_{nullptr}, target_{nullptr};
  torch::nn::Linear output_{nullptr};
  nn::Transformer transformer_{nullptr};
};

}  // namespace fovea::systems
