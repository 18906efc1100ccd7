// p = σ(wᵀ Σ_i x_i + b): words are added, and one vector says which way the sum points.
#pragma once

#include "text/embedding.h"
#include "text/model.h"

namespace fovea::systems {

class WordSumModel : public text::Model {
 public:
  struct Config {
    text::EmbeddingOptions embedding;
    int64_t classes = 2;
    Normaliser pooling = Unnormalised{};  // Uniform{}: the mean, which does not favour long texts
  };
  explicit WordSumModel(const Config& config);

  text::Answer answer(const text::Batch& batch, text::Want want) override;
  // wᵀx for word vectors [n, width]: of two classes [n, 1], for the second; otherwise [n, classes].
  at::Tensor polarity(const at::Tensor& vectors) const { return vectors.matmul(weight.t()); }

  text::Embedding embedding{nullptr};
  at::Tensor weight, bias;  // [outputs, width], [outputs]

 private:
  Config config_;
};

}  // namespace fovea::systems
