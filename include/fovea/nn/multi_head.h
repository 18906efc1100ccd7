// Multi-head attention (Vaswani et al. 2017): Z_h = attend(X W_h^Q, X W_h^K, X W_h^V), O = [Z_1 ...
// Z_H] W^O.
//
// Parameters have PyTorch's names (in_proj_weight, in_proj_bias, out_proj; q_proj_weight, ... if
// widths differ), so that weights can be copied both ways. Like libtorch's modules, this and every
// other module of nn/ has clone() and can be used in a torch::nn::Sequential.
#pragma once

#include <torch/nn.h>

#include "fovea/attend.h"
#include "fovea/nn/decoder_cache.h"

namespace fovea::nn {

struct MultiHeadOptions {
  int64_t width = 0;   // width of the model: of query and output
  int64_t heads = 1;   // number of heads; must divide the width
  double dropout = 0;  // probability of dropping a weight
  bool bias = true;
  int64_t key_width = 0, value_width = 0;  // 0: the model's
};

// Structures from boolean masks, named so that the two meanings of a mask cannot be confused.
Structure keep(at::Tensor mask);  // true: may attend. Any broadcast of [B, H, L, S].
Structure drop(at::Tensor mask);  // true: may not, as in torch.nn.MultiheadAttention

struct Attention {
  Structure structure = Dense{};
  Score score = Dot{};          // Dot with modifiers: relative positions, a bias, ...
  at::Tensor key_lengths = {};  // int [B]
  PerItem query_offset = {};    // the position of query row 0 among the keys, a number or int [B]
};

class MultiHeadImpl : public torch::nn::Cloneable<MultiHeadImpl> {
 public:
  explicit MultiHeadImpl(const MultiHeadOptions& options);
  void reset() override;

  // query [B, L, width], key [B, S, key_width], value [B, S, value_width] -> [B, L, width].
  // Without a value, the keys are the values. Without a key too, the query attends to itself:
  // module(x).
  at::Tensor forward(const at::Tensor& query, const at::Tensor& key = {},
                     const at::Tensor& value = {}, const Attention& attention = {});
  // Self-attention by name: module->self_attention(x, {.structure = Causal{}}).
  at::Tensor self_attention(const at::Tensor& x, const Attention& attention) {
    return forward(x, x, x, attention);
  }

  // The same without the output projection: [B, L, width], the heads side by side.
  at::Tensor heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   const Attention& attention);

  // For decoding: the keys and values of a memory, projected once.
  HeadsCache project(const at::Tensor& key, const at::Tensor& value);
  // The heads of new queries against a cache that does not change (cross-attention).
  at::Tensor cached_heads(const at::Tensor& query, const HeadsCache& cache,
                          const Attention& attention);
  // The heads of new positions x [B, n, width], which are first appended to the cache
  // (self-attention). Structure and score count positions from the first one in the cache, which
  // sets the query_offset.
  at::Tensor step_heads(const at::Tensor& x, StepCache& cache,
                        const Attention& attention = {.structure = Causal{}});

  // The weights of chosen rows and heads, for pictures.
  SelectedWeights weights(const at::Tensor& query, const at::Tensor& key,
                          const Attention& attention, const Selection& selection = {});
  SelectedWeights cached_weights(const at::Tensor& query, const HeadsCache& cache,
                                 const Attention& attention, const Selection& selection = {});

  const MultiHeadOptions& options() const { return options_; }

  torch::nn::Linear out_proj{nullptr};

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())},
                           {2, torch::nn::AnyValue(at::Tensor())},
                           {3, torch::nn::AnyValue(Attention())})

 private:
  void reset_parameters();
  at::Tensor project_query(const at::Tensor& query);
  at::Tensor mix(const at::Tensor& query, const HeadsCache& cache, const Attention& attention);

  MultiHeadOptions options_;
  at::Tensor in_proj_weight_, in_proj_bias_;                  // [3 width, width] and [3 width]
  at::Tensor q_proj_weight_, k_proj_weight_, v_proj_weight_;  // where widths differ
};
TORCH_MODULE(MultiHead);

}  // namespace fovea::nn
