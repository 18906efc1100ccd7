// f(X) = Σ_i φ(w_i) W + b: a bag of words, φ one-hot or one-hot times inverse document frequency
// (Salton & McGill 1986), or φ the state of a GRU at the word, which has read the words before it.
#pragma once

#include <torch/nn/modules/linear.h>

#include "fovea/nn/recurrent.h"
#include "text/embedding.h"
#include "text/model.h"

namespace fovea::systems::word2vec {

class BagModel : public text::Model {
 public:
  BagModel(const text::EmbeddingOptions& words, int64_t classes);
  text::Answer answer(const text::Batch& batch, text::Want want) override;
  // log(documents / documents with the word), of each word; ones until set.
  void set_idf(const at::Tensor& idf) { idf_.copy_(idf); }

  text::Embedding embedding{nullptr};  // [words, classes]: what one occurrence adds to each class

 private:
  at::Tensor idf_, bias_;
};

class GruBagModel : public text::Model {
 public:
  GruBagModel(const text::EmbeddingOptions& words, int64_t classes);
  text::Answer answer(const text::Batch& batch, text::Want want) override;

  text::Embedding embedding{nullptr};

 private:
  nn::Recurrent gru_{nullptr};
  torch::nn::Linear out_{nullptr};  // W, and once for each document b
};

}  // namespace fovea::systems::word2vec
