// The interface of a translation model: training with the true prefix, decoding step by step, and
// its attention.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "explain/explanation.h"
#include "fovea/nn/beam_search.h"
#include "translate/batch.h"

namespace fovea::translate {

// Attention of one kind for one sentence pair: [layers, heads, queries, keys].
struct AttentionMaps {
  enum class Kind { kCross, kSource, kTarget };
  Kind kind = Kind::kCross;
  std::string title;
  std::string score, normaliser = "softmax", structure, scale;
  at::Tensor weights;
  std::vector<explain::Plot> plots{};  // drawn under the matrix
};

// What decoding should give beside tokens.
enum class Want { kTokens, kAttention };

class Model : public torch::nn::Module {
 public:
  // [B, T, target vocabulary]: position t reads target_in[0..t] and predicts target_out[t].
  virtual at::Tensor logits(const Batch& batch) = 0;
  virtual std::unique_ptr<nn::StepModel> start(const Batch& sources, Want want) = 0;
  // [B, T, S]: how much of each source position went into the prediction of target_out[t]; rows sum
  // to 1 where the model attends. Undefined for a model without attention.
  virtual at::Tensor alignment(const Batch& batch) = 0;
  // Everything it looks at, for a batch of one pair.
  virtual std::vector<AttentionMaps> maps(const Batch& batch) = 0;
};

struct Vocabularies {
  int64_t source = 0, target = 0;
  bool shared = false;  // one list for both: embeddings may be tied
};

}  // namespace fovea::translate
