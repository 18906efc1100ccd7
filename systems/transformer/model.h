// The Transformer of Vaswani et al. 2017 as a translation model.
#pragma once

#include "fovea/nn/transformer.h"
#include "translate/stack_model.h"

namespace fovea::systems {

struct TransformerConfig {
  nn::TransformerOptions stacks;
  translate::StackConfig ends;  // its width is that of the layers
};

class TransformerModel : public translate::StackModel {
 public:
  TransformerModel(const TransformerConfig& config, const translate::Vocabularies& vocabularies);

  std::vector<translate::AttentionMaps> maps(const translate::Batch& batch) override;

 private:
  at::Tensor encode(const at::Tensor& x, const at::Tensor& lengths) override;
  at::Tensor decode(const at::Tensor& x, const at::Tensor& memory,
                    const at::Tensor& lengths) override;
  nn::DecoderCache start_decoder(const at::Tensor& memory, const at::Tensor& lengths) override;
  at::Tensor step(const at::Tensor& x, nn::DecoderCache& cache, at::Tensor* attention) override;
  at::Tensor cross_weights(const translate::Batch& batch) override;

  nn::Transformer transformer_{nullptr};
};

}  // namespace fovea::systems
