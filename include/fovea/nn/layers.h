// The Transformer's layers (Vaswani et al. 2017), with PyTorch's names: self_attn, multihead_attn,
// linear1, linear2, norm1 ...
#pragma once

#include "fovea/nn/decoder_cache.h"
#include "fovea/nn/multi_head.h"

namespace fovea::nn {

enum class NormOrder {
  kPost,  // x = LN(x + f(x)), the paper's
  kPre,   // x = x + f(LN(x)), needs a final LN
};

struct LayerOptions {
  int64_t width = 512, heads = 8, hidden = 2048;
  double dropout = 0.1;            // on each sublayer's output and inside the feed-forward net
  double attention_dropout = 0.1;  // on the weights
  NormOrder order = NormOrder::kPost;
};

class EncoderLayerImpl : public torch::nn::Cloneable<EncoderLayerImpl> {
 public:
  explicit EncoderLayerImpl(const LayerOptions& options);
  void reset() override;
  at::Tensor forward(const at::Tensor& x, const Attention& attention = {});  // [B, L, width]
  // New positions x [B, n, width] after those in the cache: a language model's step.
  at::Tensor step(const at::Tensor& x, StepCache& cache,
                  const Attention& attention = {.structure = Causal{}});
  // The input of self_attn for a layer input x: for pictures.
  at::Tensor attended(const at::Tensor& x) {
    return options_.order == NormOrder::kPre ? norm1(x) : x;
  }

  MultiHead self_attn{nullptr};
  torch::nn::Linear linear1{nullptr}, linear2{nullptr};
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(Attention())})

 private:
  double dropout() const { return is_training() ? options_.dropout : 0; }
  LayerOptions options_;
};
TORCH_MODULE(EncoderLayer);

class DecoderLayerImpl : public torch::nn::Cloneable<DecoderLayerImpl> {
 public:
  explicit DecoderLayerImpl(const LayerOptions& options);
  void reset() override;
  // x [B, T, width], memory [B, S, width]; `self` is the target's attention (causal), `cross` the
  // memory's.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory, const Attention& self,
                     const Attention& cross);
  // Decodes new positions x [rows, n, width] in two halves: attention to the row's own positions;
  // then attention to the memory, which rows share, and the feed-forward net.
  at::Tensor self_step(const at::Tensor& x, StepCache& cache);
  at::Tensor cross_step(const at::Tensor& after_self, const HeadsCache& memory,
                        const Readers& readers);

  // The output of the first sublayer, and the inputs of each attention: for pictures.
  at::Tensor after_self(const at::Tensor& x, const Attention& self);
  at::Tensor self_attended(const at::Tensor& x) {
    return options_.order == NormOrder::kPre ? norm1(x) : x;
  }
  at::Tensor cross_attended(const at::Tensor& after_self) {
    return options_.order == NormOrder::kPre ? norm2(after_self) : after_self;
  }

  MultiHead self_attn{nullptr}, multihead_attn{nullptr};
  torch::nn::Linear linear1{nullptr}, linear2{nullptr};
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};

 private:
  double dropout() const { return is_training() ? options_.dropout : 0; }
  LayerOptions options_;
};
TORCH_MODULE(DecoderLayer);

}  // namespace fovea::nn
