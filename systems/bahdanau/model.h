// Bahdanau, Cho & Bengio 2015: a decoder that looks at the source anew for every word, with an
// additive score.
//
//   e_tj = v' tanh(W s_{t-1} + U h_j),  c_t = sum_j a_tj h_j,  s_t = GRU(s_{t-1}, [y_{t-1}; c_t])
#pragma once

#include "fovea/nn/recurrent.h"
#include "translate/recurrent_model.h"

namespace fovea::systems {

struct BahdanauConfig {
  int64_t embedding = 128, width = 128,
          alignment = 128;  // width of each direction of the encoder, and of the decoder
  int64_t encoder_layers = 1;
  double dropout = 0.1;  // on embeddings and before the output
  Normaliser normaliser = Softmax{};
  std::string normaliser_name = "softmax";
};

class BahdanauModel : public translate::RecurrentModel {
 public:
  BahdanauModel(const BahdanauConfig& config, const translate::Vocabularies& vocabularies);

  std::vector<translate::AttentionMaps> maps(const translate::Batch& batch) override;
  std::optional<translate::DecodingSteps> steps(const translate::Batch& batch) override;

 private:
  // Keys U h are computed once for each sentence.
  Decoder encode(const translate::Batch& batch) override;
  at::Tensor decode(Decoder& decoder, const at::Tensor& words,
                    std::vector<at::Tensor>* rows) override;
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
