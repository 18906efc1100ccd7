// Structured attention networks (Kim, Denton, Hoang & Rush 2017): weights are marginals of a
// distribution over whole structures.
//
//   tree:  p(z) ~ exp(sum_ij theta_ij z_ij) over projective trees,  c_j = sum_i p(z_ij = 1) x_i
//   chain: p(z) ~ exp(sum_i theta_i z_i + sum_i b[z_i, z_{i+1}]),   o = sum_i p(z_i = 1) x_i
#pragma once

#include "fovea/nn/recurrent.h"
#include "text/embedding.h"
#include "text/model.h"
#include "train/named.h"
#include "translate/recurrent_model.h"

namespace fovea::systems::structured_attention {

// What becomes of the scores: marginals of the structure, or weights of each key on its own; kNone:
// there is nothing to look at (formulas), or all words weigh the same (spans).
enum class Weighing { kStructured, kSoftmax, kSigmoid, kNone };
inline constexpr Named<Weighing, 4> kWeighings{{{"structured", Weighing::kStructured},
                                                {"softmax", Weighing::kSoftmax},
                                                {"sigmoid", Weighing::kSigmoid},
                                                {"none", Weighing::kNone}}};

struct FormulaConfig {
  int64_t width = 64;  // of a symbol, and of each direction of the network that scores arcs
  int64_t state = 128;
  double dropout = 0;
  Weighing weighing = Weighing::kStructured;
};

// Each symbol is its own vector beside the mean of its heads, [x_j; c_j]; states of a recurrent network
// go into the scores of arcs and nowhere else. So what the decoder knows of a symbol's place, the
// heads told it.
class FormulaModel : public translate::RecurrentModel {
 public:
  FormulaModel(const FormulaConfig& config, const translate::Vocabularies& vocabularies);

  std::vector<translate::AttentionMaps> maps(const translate::Batch& batch) override;

 private:
  // theta [B, head, dependant]: s' tanh(W_h h_i + W_d h_j + b); the root's on the diagonal.
  at::Tensor arc_scores(const at::Tensor& x, const at::Tensor& lengths);
  Decoder encode(const translate::Batch& batch) override;
  at::Tensor decode(Decoder& decoder, const at::Tensor& words,
                    std::vector<at::Tensor>* rows) override;

  FormulaConfig config_;
  torch::nn::Embedding source_{nullptr}, target_{nullptr};
  nn::Recurrent reader_{nullptr};
  torch::nn::Linear head_{nullptr}, dependant_{nullptr}, query_{nullptr}, key_{nullptr};
  torch::nn::LSTMCell cell_{nullptr};
  torch::nn::Linear mixed_{nullptr}, output_{nullptr};
  at::Tensor arc_, root_, score_,
      first_;  // s, the root's vector, the decoder's score and first state
};

struct SpanConfig {
  text::EmbeddingOptions embedding{};
  int64_t classes = 2;
  int64_t hidden = 50;  // of theta_i = w' tanh(W x_i + b)
  double dropout = 0;
  Weighing weighing = Weighing::kStructured;
};

// Finds which words are in the run, as a chain of choices (in or out), and answers from their sum.
class SpanModel : public text::Model {
 public:
  explicit SpanModel(const SpanConfig& config);

  text::Answer answer(const text::Batch& batch, text::Want want) override;
  // Weights [total] of packed words for the same scores under another way of weighing.
  at::Tensor weights_by(Weighing weighing, const text::Batch& batch);

  text::Embedding embedding{nullptr};
  at::Tensor pairwise;  // b [2, 2]: out, in

 private:
  at::Tensor scores(const at::Tensor& rows);  // theta, [B, n, width] -> [B, n]

  SpanConfig config_;
  torch::nn::Linear key_{nullptr}, theta_{nullptr}, answer_{nullptr};
};

}  // namespace fovea::systems::structured_attention
