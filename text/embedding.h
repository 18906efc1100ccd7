// Word vectors as a module: learned here, or begun from a file and then tuned or left as they are.
#pragma once

#include <torch/nn.h>

#include "text/vectors.h"
#include "train/named.h"

namespace fovea::data {
class Vocabulary;
}

namespace fovea::text {

enum class Learning { kOwn, kTuned, kFrozen };
inline constexpr Named<Learning, 3> kLearnings{
    {{"own", Learning::kOwn}, {"tuned", Learning::kTuned}, {"frozen", Learning::kFrozen}}};

struct EmbeddingOptions {
  int64_t words = 0, width = 0;
  Learning learning = Learning::kOwn;
  double deviation = 0.1;   // of the first values of words that have no vector given
  double dropout = 0;       // on single numbers
  double word_dropout = 0;  // on whole words
};

// PAD and UNK are zero and stay so. Frozen: words with a vector given keep it; the others are
// learned.
class EmbeddingImpl : public torch::nn::Module {
 public:
  explicit EmbeddingImpl(const EmbeddingOptions& options);
  // ids [total] -> [total, width]; dropout while training.
  at::Tensor forward(const at::Tensor& ids);
  // The given vectors of the vocabulary's words; returns how many were found.
  int64_t begin_with(const Vectors& vectors, const data::Vocabulary& vocabulary);

  at::Tensor weight;  // [words, width]

 private:
  EmbeddingOptions options_;
  at::Tensor still_;  // int64: rows that never move
};
TORCH_MODULE(Embedding);

// What a finished run made of its words, to begin another with: its vectors.txt or vectors.bin
// where it wrote one, otherwise the embedding of its model.
Vectors vectors_of_run(const std::string& folder);

}  // namespace fovea::text
