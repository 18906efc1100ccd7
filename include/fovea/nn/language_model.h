// A causal Transformer that gives the next token's scores (Radford et al. 2018), as Llama (Touvron
// et al. 2023) has its layers and names them:
//
//   x = x + heads(norm(x)),   x = x + w2(silu(w1(norm(x))) ⊙ w3(norm(x)))
#pragma once

#include <torch/nn.h>

#include <vector>

#include "fovea/nn/grouped_heads.h"
#include "fovea/nn/rms_norm.h"

namespace fovea::nn {

enum class NormKind { kRms, kLayer };
enum class Positions { kRotary, kLearned };

struct LanguageModelOptions {
  int64_t vocabulary = 0, width = 64, hidden = 176, layers = 2;
  int64_t heads = 4, key_heads = 0;  // 0: as many as `heads`
  int64_t context = 256;             // the most positions it sees
  NormKind norm = NormKind::kRms;
  Positions positions = Positions::kRotary;
  bool tie = true;     // the output layer is the embedding
  double dropout = 0;  // of embeddings and of what layers add
};

// RMS norm or layer norm, as the options say.
class LanguageNormImpl : public torch::nn::Cloneable<LanguageNormImpl> {
 public:
  LanguageNormImpl(NormKind kind, int64_t width);
  void reset() override;
  at::Tensor forward(const at::Tensor& x);

  at::Tensor weight, bias;  // no bias: RMS norm
  static constexpr double kEpsilon = 1e-5;

 private:
  NormKind kind_;
  int64_t width_;
};
TORCH_MODULE(LanguageNorm);

class LanguageLayerImpl : public torch::nn::Cloneable<LanguageLayerImpl> {
 public:
  explicit LanguageLayerImpl(const LanguageModelOptions& options);
  void reset() override;
  at::Tensor forward(const at::Tensor& x);
  at::Tensor step(const at::Tensor& x, StepCache& cache);
  at::Tensor weights(const at::Tensor& x) { return attention->weights(attention_norm(x)); }

  GroupedHeads attention{nullptr};
  LanguageNorm attention_norm{nullptr}, ffn_norm{nullptr};
  torch::nn::Linear w1{nullptr}, w2{nullptr}, w3{nullptr};

 private:
  at::Tensor fed_forward(const at::Tensor& x);
  at::Tensor dropped(const at::Tensor& x) const {
    return at::dropout(x, options_.dropout, is_training());
  }
  LanguageModelOptions options_;
};
TORCH_MODULE(LanguageLayer);

// Keys and values of the positions so far, a cache for each layer.
struct LanguageCache {
  std::vector<StepCache> layers;
  int64_t length() const { return layers.empty() ? 0 : layers[0].length(); }
};

class LanguageModelImpl : public torch::nn::Cloneable<LanguageModelImpl> {
 public:
  explicit LanguageModelImpl(const LanguageModelOptions& options);
  void reset() override;

  // tokens int64 [B, L], L at most the context -> scores of each next token [B, L, vocabulary].
  at::Tensor forward(const at::Tensor& tokens);
  // The same for n new tokens [B, n] after those in the cache.
  at::Tensor step(const at::Tensor& tokens, LanguageCache& cache);
  // [layers, B, L, vocabulary]: the scores as if the model ended after each of its layers; for
  // pictures.
  at::Tensor after_each_layer(const at::Tensor& tokens);
  // [layers, B, heads, L, L]
  at::Tensor weights(const at::Tensor& tokens);

  const LanguageModelOptions& options() const { return options_; }
  LanguageLayerImpl& layer(int64_t i) {
    return *layers->at<LanguageLayerImpl>(static_cast<size_t>(i)).as<LanguageLayerImpl>();
  }
  // The weights [vocabulary, width] of the last product.
  at::Tensor output_weight() const;

  torch::nn::Embedding tok_embeddings{nullptr};
  torch::nn::Embedding pos_embeddings{nullptr};  // null with rotary positions
  torch::nn::ModuleList layers{nullptr};
  LanguageNorm norm{nullptr};
  torch::nn::Linear output{nullptr};  // null where it is the embedding

 private:
  at::Tensor embedded(const at::Tensor& tokens, int64_t first);
  LanguageModelOptions options_;
};
TORCH_MODULE(LanguageModel);

}  // namespace fovea::nn
