// The input, the output and the attention of a model of text.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "fovea/attend.h"

namespace fovea::text {

// Documents of sentences of words, one after another; nothing is padded.
struct Batch {
  at::Tensor words;      // int64 [total]
  at::Tensor sentences;  // int32 [sentences + 1]: where each sentence's words begin
  at::Tensor documents;  // int32 [documents + 1]: where each document's sentences begin
  at::Tensor aspects;    // int64 [documents]: the word asked about; 0 none, 1 unknown

  int64_t items() const { return documents.size(0) - 1; }
  // int32 [documents + 1]: where each document's words begin.
  at::Tensor bounds() const { return sentences.index_select(0, documents.to(at::kLong)); }
};

// Where a model looked: weights before dropout, and the labels every picture carries.
struct Look {
  at::Tensor words;                // [heads, total]
  at::Tensor sentences;            // [sentences], or undefined
  std::vector<std::string> heads;  // names
  std::string score, normaliser, structure, scale;
};

struct Answer {
  at::Tensor logits;   // [documents, classes]
  Look look;           // if it was requested
  at::Tensor penalty;  // in training: a scalar that the loss adds, or undefined
};
enum class Want { kLogits, kLook };

class Model : public torch::nn::Module {
 public:
  virtual Answer answer(const Batch& batch, Want want) = 0;
  at::Tensor logits(const Batch& batch) { return answer(batch, Want::kLogits).logits; }
};

// The weights that each bag's own queries give its items, packed: [queries of a bag * heads,
// total]. `query` has the same number of queries for each bag.
at::Tensor packed_weights(const at::Tensor& query, const at::Tensor& key, const Choices& choices,
                          const at::Tensor& offsets);

}  // namespace fovea::text
