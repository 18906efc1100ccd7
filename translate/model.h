// The interface of a translation model: training with the true prefix, decoding step by step, and
// its attention.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>
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

// What happens at each of the T outputs of one pair: scores of the source's S states, their weights,
// the sum of the states in these shares, and with the decoder's own state the next word.
struct DecodingSteps {
  at::Tensor scores, weights;  // [T, S]
  at::Tensor states;           // [S, width of a source state]
  at::Tensor contexts;         // [T, width of a source state]
  at::Tensor decoder;          // [T, width of the decoder]
  at::Tensor logits;           // [T, target vocabulary]
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
  // For a batch of one pair; none for a model whose step is not of this form.
  virtual std::optional<DecodingSteps> steps(const Batch&) { return std::nullopt; }
};

struct Vocabularies {
  int64_t source = 0, target = 0;
  bool shared = false;  // one list for both: embeddings may be tied
};

}  // namespace fovea::translate
