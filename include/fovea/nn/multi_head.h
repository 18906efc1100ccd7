// Multi-head attention (Vaswani et al. 2017): Z_h = attend(X W_h^Q, X W_h^K, X W_h^V), O = [Z_1 ...
// Z_H] W^O.
//
// Parameters carry PyTorch's names (in_proj_weight, in_proj_bias, out_proj; q_proj_weight, ...
// where widths differ), so that weights move both ways. As libtorch's own, this and every other
// module of nn/ has clone(), and serves in a torch::nn::Sequential.
#pragma once

#include <torch/nn.h>

#include "fovea/attend.h"
#include "fovea/nn/decoder_cache.h"

namespace fovea::nn {

struct MultiHeadOptions {
  int64_t width = 0;   // of the model: query and output
  int64_t heads = 1;   // width must be a multiple
  double dropout = 0;  // on the weights
  bool bias = true;
  int64_t key_width = 0, value_width = 0;  // 0: the model's
};

// Who may see whom, said in words, so that the two meanings of a boolean mask cannot be confused.
Structure keep(at::Tensor mask);  // true: may attend. Any broadcast of [B, H, L, S].
Structure drop(at::Tensor mask);  // true: may not, as in torch.nn.MultiheadAttention

struct Attention {
  Structure structure = Dense{};
  at::Tensor key_lengths = {};  // int [B]
  PerItem query_offset = {};    // the position of query row 0 among the keys, a number or int [B]
};

class MultiHeadImpl : public torch::nn::Cloneable<MultiHeadImpl> {
 public:
  explicit MultiHeadImpl(const MultiHeadOptions& options);
  void reset() override;

  // query [B, L, width], key [B, S, key_width], value [B, S, value_width] -> [B, L, width]. Where no
  // value is given the keys are the values; where no key is given either, the query attends to
  // itself: module(x).
  at::Tensor forward(const at::Tensor& query, const at::Tensor& key = {},
                     const at::Tensor& value = {}, const Attention& attention = {});
  // The last said in words: module->self_attention(x, {.structure = Causal{}}).
  at::Tensor self_attention(const at::Tensor& x, const Attention& attention) {
    return forward(x, x, x, attention);
  }

  // The same up to the output projection: [B, L, width], the heads side by side.
  at::Tensor heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   const Attention& attention);

  // Decoding: the keys and values of a memory, projected once.
  HeadsCache project(const at::Tensor& key, const at::Tensor& value);
  // The heads of new queries against a cache that stays as it is (cross attention).
  at::Tensor cached_heads(const at::Tensor& query, const HeadsCache& cache,
                          const Attention& attention);
  // Those of new positions x [B, n, width], which join the cache and then see it as `structure`
  // says, counted from the first position there (self attention).
  at::Tensor step_heads(const at::Tensor& x, StepCache& cache,
                        const Structure& structure = Causal{});

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
