// Words make sentences, sentences make a document, and at both levels a learned vector says what to
// look at (Yang et al. 2016):
//   u_it = tanh(W h_it + b),  a_it = softmax_t(u_it·u_w),  s_i = Σ_t a_it h_it
// and the same over the sentences' states with u_s.
#pragma once

#include <torch/nn.h>

#include "fovea/nn/recurrent.h"
#include "text/embedding.h"
#include "text/model.h"

namespace fovea::systems {

// One level: a recurrent encoder over packed sequences and attention over each.
class AttentiveEncoderImpl : public torch::nn::Module {
 public:
  struct Config {
    int64_t input = 0, width = 50;  // of each direction
    int64_t context = 100;
    Normaliser normaliser = Softmax{};
  };
  explicit AttentiveEncoderImpl(const Config& config);
  struct Encoded {
    at::Tensor mixed;    // [sequences, 2 width]; zero for an empty sequence
    at::Tensor weights;  // [items], where wanted
  };
  Encoded forward(const at::Tensor& x, const at::Tensor& offsets, text::Want want);

 private:
  Config config_;
  nn::Recurrent encoder_{nullptr};
  torch::nn::Linear project_{nullptr};
  at::Tensor context_;  // u
};
TORCH_MODULE(AttentiveEncoder);

class HierarchicalModel : public text::Model {
 public:
  struct Config {
    text::EmbeddingOptions embedding;
    int64_t classes = 2, width = 50, context = 100;
    Normaliser normaliser = Softmax{};
    std::string normaliser_name = "softmax";
    double dropout = 0;
  };
  explicit HierarchicalModel(const Config& config);
  text::Answer answer(const text::Batch& batch, text::Want want) override;

  text::Embedding embedding{nullptr};

 private:
  Config config_;
  AttentiveEncoder words_{nullptr}, sentences_{nullptr};
  torch::nn::Linear output_{nullptr};
};

}  // namespace fovea::systems
