// Bahdanau, Cho & Bengio 2015: a decoder that looks at the source anew for every word, with an
// additive score.
//
//   e_tj = v' tanh(W s_{t-1} + U h_j),  c_t = sum_j a_tj h_j,  s_t = GRU(s_{t-1}, [y_{t-1}; c_t])
#pragma once

#include "fovea/attend.h"
#include "fovea/nn/recurrent.h"
#include "translate/model.h"

namespace fovea::systems {

struct BahdanauConfig {
  int64_t embedding = 128, width = 128,
          alignment = 128;  // width: of each direction of the encoder, and of the decoder
  int64_t encoder_layers = 1;
  double dropout = 0.1;  // on embeddings and before the output
  Normaliser normaliser = Softmax{};
  std::string normaliser_name = "softmax";
};

class BahdanauModel : public translate::Model {
 public:
  BahdanauModel(const BahdanauConfig& config, const translate::Vocabularies& vocabularies);

  at::Tensor logits(const translate::Batch& batch) override;
  std::unique_ptr<nn::StepModel> start(const translate::Batch& sources,
                                       translate::Want want) override;
  at::Tensor alignment(const translate::Batch& batch) override;
  std::vector<translate::AttentionMaps> maps(const translate::Batch& batch) override;

 private:
  class Steps;
  // What a sentence gives the decoder; keys U h are computed once.
  struct Memory {
    at::Tensor states, keys, lengths;  // [B, S, 2 width], [B, S, alignment], [B]
  };
  Memory encode(const translate::Batch& batch, at::Tensor* first_state);
  at::Tensor embed_target(const at::Tensor& tokens);
  Choices choices() const;
  at::Tensor query(const at::Tensor& state) {
    return query_(state).unsqueeze(1).unsqueeze(1);
  }                                                                   // [B, 1, 1, alignment]
  at::Tensor context(const Memory& memory, const at::Tensor& state);  // [B, 2 width]
  at::Tensor weights(const Memory& memory, const at::Tensor& state);  // [B, S]
  // Logits from state, previous word and context by a maxout layer; any leading dimensions.
  at::Tensor output(const at::Tensor& state, const at::Tensor& word, const at::Tensor& context);

  BahdanauConfig config_;
  torch::nn::Embedding source_{nullptr}, target_{nullptr};
  nn::Recurrent encoder_{nullptr};
  torch::nn::Linear first_state_{nullptr}, query_{nullptr}, key_{nullptr};
  at::Tensor score_;  // v
  torch::nn::GRUCell cell_{nullptr};
  torch::nn::Linear maxout_{nullptr}, output_{nullptr};
};

}  // namespace fovea::systems
