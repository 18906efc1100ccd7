// An LSTM reads the words; an aspect is the query over its states (Wang et al. 2016, AT- and
// ATAE-LSTM):
//   e_i = wᵀtanh([W_h h_i; W_v v]),  r = Σ_i softmax_i(e) h_i,  h* = tanh(W_p r + W_x h_n)
#pragma once

#include <torch/nn.h>

#include "fovea/nn/recurrent.h"
#include "text/embedding.h"
#include "text/model.h"

namespace fovea::systems {

enum class AspectUse {
  kBlind,
  kAt,
  kAtae
};  // not at all; in the score; in the score and beside every word
enum class AspectScore { kConcat, kSum };  // tanh([W_h h; W_v v]), the paper's; tanh(W_h h + W_v v)

class DocumentAttentionModel : public text::Model {
 public:
  struct Config {
    text::EmbeddingOptions embedding;
    int64_t classes = 2, aspects = 4, aspect_width = 50, width = 64;
    AspectUse use = AspectUse::kAtae;
    AspectScore score = AspectScore::kConcat;
    Normaliser normaliser = Softmax{};
    std::string normaliser_name = "softmax";
    double dropout = 0;
    double forgetting = 0;       // of what the LSTM carries on, see text/recurrent.h
    double last_forgetting = 0;  // of h_n: then the answer depends on the weighted states alone
  };
  explicit DocumentAttentionModel(const Config& config);
  text::Answer answer(const text::Batch& batch, text::Want want) override;

  text::Embedding embedding{nullptr};

 private:
  // v [documents, aspect_width]: the vector of the aspect; a learned constant if there is no
  // aspect; zero if it is unknown.
  at::Tensor aspect(const text::Batch& batch);

  Config config_;
  text::Embedding aspects_{nullptr};
  at::Tensor no_aspect_, score_;  // [aspect_width], w
  nn::Recurrent encoder_{nullptr};
  torch::nn::Linear key_{nullptr}, query_{nullptr}, from_mixed_{nullptr}, from_last_{nullptr},
      output_{nullptr};
};

}  // namespace fovea::systems
