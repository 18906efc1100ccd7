// R learned queries look at a set of words: v_r = Σ_i a_ri x_i, each θ_r normalised on its own,
// output [v_1; …; v_R].
#pragma once

#include <torch/nn.h>

#include "systems/fixed_attention/context.h"
#include "text/embedding.h"
#include "text/model.h"

namespace fovea::systems {

enum class FixedScore { kDot, kMlp };
enum class MlpActivation { kTanh, kSigmoid };

class FixedAttentionModel : public text::Model {
 public:
  struct Config {
    text::EmbeddingOptions embedding{};
    int64_t classes = 2;
    int64_t queries = 1;  // R
    FixedScore score = FixedScore::kDot;
    int64_t hidden = 50;                              // of the MLP score θᵀg(W x + b)
    MlpActivation activation = MlpActivation::kTanh;  // g
    Normaliser normaliser = Softmax{};
    std::string normaliser_name = "softmax";
    std::shared_ptr<Context> context{};  // of the words; without one they stand alone
    double dropout = 0;
    double penalty = 0;  // weight of ‖A Aᵀ − I‖² in the loss
  };
  explicit FixedAttentionModel(const Config& config);

  text::Answer answer(const text::Batch& batch, text::Want want) override;
  // e_ri before the normaliser, for word vectors [total, width]: [R, total].
  at::Tensor scores(const at::Tensor& x);

  text::Embedding embedding{nullptr};
  at::Tensor theta;  // [R, width], or [R, hidden] of the MLP

 private:
  // What the queries see of the words: x itself, or g(W x + b).
  at::Tensor keys(const at::Tensor& x);
  Choices choices(const at::Tensor& bounds) const;
  at::Tensor alike(const at::Tensor& query, const at::Tensor& key, const at::Tensor& bounds) const;

  Config config_;
  torch::nn::Linear key_{nullptr}, answer_{nullptr};
};

}  // namespace fovea::systems
