// Grouped heads (Ainslie et al. 2023): several heads of queries share one head of keys and values.
//
//   O = [Z_1 … Z_H] W_o,   Z_h = attend(R(x W_q,h), R(x W_k,g), x W_v,g),   g = h · Hkv / H
//
// R rotates queries and keys by their positions (rotary.h), or is the identity. The parameters have the
// names of Llama's layers: wq, wk, wv, wo, without bias.
#pragma once

#include <torch/nn.h>

#include "fovea/attend.h"
#include "fovea/nn/decoder_cache.h"

namespace fovea::nn {

struct GroupedHeadsOptions {
  int64_t width = 0;
  int64_t heads = 1;           // of queries; must divide the width
  int64_t key_heads = 0;       // of keys and values; must divide `heads`; 0: as many
  double rotary_base = 10000;  // 0: no rotary positions
  double dropout = 0;          // probability of dropping a weight
};

class GroupedHeadsImpl : public torch::nn::Cloneable<GroupedHeadsImpl> {
 public:
  explicit GroupedHeadsImpl(const GroupedHeadsOptions& options);
  void reset() override;

  at::Tensor forward(const at::Tensor& x, const Structure& structure = Causal{});  // [B, L, width]
  // New positions x [B, n, width], which see those in the cache and, causally, each other; their
  // keys and values join the cache.
  at::Tensor step(const at::Tensor& x, StepCache& cache);
  // [B, heads, L, L] under a causal structure, for pictures.
  at::Tensor weights(const at::Tensor& x);

  const GroupedHeadsOptions& options() const { return options_; }
  int64_t key_heads() const { return options_.key_heads > 0 ? options_.key_heads : options_.heads; }
  int64_t head_width() const { return options_.width / options_.heads; }

  torch::nn::Linear wq{nullptr}, wk{nullptr}, wv{nullptr}, wo{nullptr};

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(Structure(Causal{}))})

 private:
  at::Tensor turned(const at::Tensor& projected, int64_t heads, int64_t first) const;

  GroupedHeadsOptions options_;
};
TORCH_MODULE(GroupedHeads);

}  // namespace fovea::nn
