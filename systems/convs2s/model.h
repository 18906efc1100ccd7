// Gehring et al. 2017: gated convolutions in encoder and decoder, attention in every decoder layer.
//
//   d_i = W h_i + g_i,  a_ij = softmax_j(d_i . z_j),  c_i = sum_j a_ij (z_j + e_j)
#pragma once

#include "fovea/attend.h"
#include "translate/model.h"

namespace fovea::systems {

struct ConvS2SConfig {
  int64_t width = 256, kernel = 3;
  int64_t encoder_layers = 4, decoder_layers = 4;
  double dropout = 0.1;
  int64_t longest = 1024;  // positions that have an embedding
};

class ConvS2SModel : public translate::Model {
 public:
  ConvS2SModel(const ConvS2SConfig& config, const translate::Vocabularies& vocabularies);

  at::Tensor logits(const translate::Batch& batch) override;
  std::unique_ptr<nn::StepModel> start(const translate::Batch& sources,
                                       translate::Want want) override;
  at::Tensor alignment(const translate::Batch& batch) override;
  std::vector<translate::AttentionMaps> maps(const translate::Batch& batch) override;

 private:
  class Steps;
  struct Memory {
    at::Tensor keys, values, lengths;  // z and z + e, [B, S, width]
  };
  at::Tensor embed(torch::nn::Embedding& tokens, torch::nn::Embedding& positions,
                   const at::Tensor& ids);
  Memory encode(const translate::Batch& batch);
  // All target positions. If `rows` is not null, it receives the weights [B, T, S] of each layer.
  at::Tensor decode(const Memory& memory, const at::Tensor& target_in,
                    std::vector<at::Tensor>* rows);
  std::vector<at::Tensor> layer_weights(const translate::Batch& batch);

  ConvS2SConfig config_;
  torch::nn::Embedding source_{nullptr}, target_{nullptr}, source_position_{nullptr},
      target_position_{nullptr};
  torch::nn::ModuleList encoder_{nullptr}, decoder_{nullptr}, into_attention_{nullptr},
      out_of_attention_{nullptr};
  torch::nn::Linear output_{nullptr};
};

}  // namespace fovea::systems
