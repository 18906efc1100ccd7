// Wu et al. 2016, Google's Neural Machine Translation System: stacks of LSTM layers on both sides.
//
//   e_tj = v' tanh(W s1_{t-1} + U h_j),  c_t = sum_j a_tj h_j
//   s1_t = LSTM_1(s1_{t-1}, [y_{t-1}; c_t])
//   x_t^l = LSTM_l([x_t^{l-1}; c_t]) (+ x_t^{l-1} from the third layer on)
//
// Only the bottom layer of the decoder is the query of attention; all layers read the result. So only
// the bottom layer goes step by step, and the layers above take a whole sentence at once.
#pragma once

#include "fovea/nn/recurrent.h"
#include "translate/recurrent_model.h"

namespace fovea::systems {

// The state of the bottom layer that asks: s1_{t-1} as above; or the new one, s1_t, which has read the
// word before and c_{t-1}, as in tensorflow/nmt, which the authors' group published later (gnmt_v2).
enum class GnmtQuery { kPrevious, kNew };

struct GnmtConfig {
  int64_t embedding = 128,
          width = 128;   // width: of every layer, and of each direction of the first
  int64_t layers = 3;    // of the encoder and of the decoder, at least 2
  double dropout = 0.1;  // before every layer and before the output
  GnmtQuery query = GnmtQuery::kPrevious;
};

class GnmtModel : public translate::RecurrentModel {
 public:
  GnmtModel(const GnmtConfig& config, const translate::Vocabularies& vocabularies);

  std::vector<translate::AttentionMaps> maps(const translate::Batch& batch) override;

 private:
  // States: hidden and cell of the bottom layer, of the next, and so on; the last context.
  Decoder encode(const translate::Batch& batch) override;
  at::Tensor decode(Decoder& decoder, const at::Tensor& words,
                    std::vector<at::Tensor>* rows) override;
  at::Tensor dropped(const at::Tensor& x) const;

  GnmtConfig config_;
  torch::nn::Embedding source_{nullptr}, target_{nullptr};
  std::vector<nn::Recurrent> encoder_;
  torch::nn::Linear query_{nullptr}, key_{nullptr};
  at::Tensor score_;  // v
  torch::nn::LSTMCell bottom_{nullptr};
  std::vector<torch::nn::LSTM> above_;
  torch::nn::Linear output_{nullptr};
};

}  // namespace fovea::systems
