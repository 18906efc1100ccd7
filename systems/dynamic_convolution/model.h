// Wu et al. 2019, Pay Less Attention with Lightweight and Dynamic Convolutions, and Tay et al. 2019,
// Quaternion Networks, as translation models: fovea/nn/light_transformer.h has the layers.
#pragma once

#include "fovea/nn/light_transformer.h"
#include "translate/stack_model.h"

namespace fovea::systems {

struct DynamicConvolutionConfig {
  nn::LightTransformerOptions stacks;
  translate::StackConfig ends;  // its width is that of the layers
};

class DynamicConvolutionModel : public translate::StackModel {
 public:
  DynamicConvolutionModel(const DynamicConvolutionConfig& config,
                          const translate::Vocabularies& vocabularies);

  std::vector<translate::AttentionMaps> maps(const translate::Batch& batch) override;

 private:
  at::Tensor encode(const at::Tensor& x, const at::Tensor& lengths) override;
  at::Tensor decode(const at::Tensor& x, const at::Tensor& memory,
                    const at::Tensor& lengths) override;
  nn::DecoderCache start_decoder(const at::Tensor& memory, const at::Tensor& lengths) override;
  at::Tensor step(const at::Tensor& x, nn::DecoderCache& cache, at::Tensor* attention) override;
  at::Tensor cross_weights(const translate::Batch& batch) override;
  // What the layers of a stack do with a sentence: weights [layers, heads, L, L] and kernels
  // [1, L, heads, kernel] each.
  struct Mixed {
    std::vector<at::Tensor> weights, kernels;
  };
  translate::AttentionMaps described(translate::AttentionMaps::Kind kind, const Mixed& mixed) const;
  std::string cross_scale() const;

  nn::LightTransformer stacks_{nullptr};
};

}  // namespace fovea::systems
