// A Transformer's encoder as BERT has it (Devlin et al. 2019):
//
//   x = LN(token + position + segment)
//   x = LN(x + heads(x)),   x = LN(x + W2 gelu(W1 x))
//
// Sequences stand one after another and attend by the structure Ragged: nothing is padded.
#pragma once

#include <torch/nn.h>

#include <vector>

#include "fovea/attend.h"

namespace fovea::nn {

enum class HiddenActivation { kGelu, kGeluTanh, kRelu };

struct BertOptions {
  int64_t vocabulary = 0, width = 128, hidden = 512, layers = 2, heads = 2;
  int64_t context = 512;  // the most positions of a sequence
  int64_t segments = 2;
  HiddenActivation activation = HiddenActivation::kGelu;
  double dropout = 0.1, attention_dropout = 0.1;
  double epsilon = 1e-12;  // of the layer norms
};

struct BertInput {
  at::Tensor tokens;    // int64 [total]
  at::Tensor segments;  // int64 [total]; undefined: all 0
  at::Tensor offsets;   // int32 [sequences + 1]: where each sequence begins, and the end
};

class BertLayerImpl : public torch::nn::Cloneable<BertLayerImpl> {
 public:
  explicit BertLayerImpl(const BertOptions& options);
  void reset() override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& offsets);  // [total, width]
  // Of one sequence x [n, width]: [heads, n, n].
  at::Tensor weights(const at::Tensor& x);

  torch::nn::Linear in_proj{nullptr}, out_proj{nullptr};  // in_proj: queries, keys, values
  torch::nn::Linear linear1{nullptr}, linear2{nullptr};
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};

 private:
  BertOptions options_;
};
TORCH_MODULE(BertLayer);

class BertImpl : public torch::nn::Cloneable<BertImpl> {
 public:
  explicit BertImpl(const BertOptions& options);
  void reset() override;

  // The last layer's states [total, width].
  at::Tensor forward(const BertInput& input);
  // Those of the embedding and of each layer.
  std::vector<at::Tensor> states(const BertInput& input);
  // Of one sequence: [layers, heads, n, n].
  at::Tensor weights(const BertInput& input);

  const BertOptions& options() const { return options_; }
  BertLayerImpl& layer(int64_t i) {
    return *layers->at<BertLayerImpl>(static_cast<size_t>(i)).as<BertLayerImpl>();
  }

  torch::nn::Embedding words{nullptr}, positions{nullptr}, segments{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::ModuleList layers{nullptr};

 private:
  at::Tensor embedded(const BertInput& input);
  BertOptions options_;
};
TORCH_MODULE(Bert);

// The scores of the words that may stand at a position: LN(gelu(W x)) times the embedding, and a bias.
class MaskedWordsImpl : public torch::nn::Cloneable<MaskedWordsImpl> {
 public:
  explicit MaskedWordsImpl(const BertOptions& options);
  void reset() override;
  // states [n, width], words [vocabulary, width] -> [n, vocabulary]
  at::Tensor forward(const at::Tensor& states, const at::Tensor& words);

  torch::nn::Linear transform{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  at::Tensor bias;  // [vocabulary]

 private:
  BertOptions options_;
};
TORCH_MODULE(MaskedWords);

// Each sequence's first state: [sequences, width].
at::Tensor first_states(const at::Tensor& states, const at::Tensor& offsets);
// Each sequence's mean: attention with a constant score. [sequences, width]
at::Tensor mean_states(const at::Tensor& states, const at::Tensor& offsets);

}  // namespace fovea::nn
