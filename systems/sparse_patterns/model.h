// A causal Transformer over the pixels of a picture (Child et al. 2019): norms before each sublayer,
// GELU, and weights that start smaller the more layers there are.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "systems/sparse_patterns/pattern.h"

namespace fovea::systems::sparse_patterns {

struct Config {
  int64_t side = 14, width = 64, heads = 4, hidden = 256, layers = 2;
  Pattern pattern = {};
  Combination combination = Combination::kMerge;
  int64_t pixels() const { return side * side; }
};

class Layer : public torch::nn::Module {
 public:
  Layer(const Config& config, int64_t number);
  torch::Tensor forward(const torch::Tensor& x);  // [B, n, width]
  // The newest row x [B, width] at position i, with the keys and values of all rows so far in
  // `cache` [B, n, 2 width], to which its own are written.
  torch::Tensor step(const torch::Tensor& x, int64_t i, torch::Tensor& cache);
  // The weights of row i over the keys its pattern allows, by head.
  std::vector<torch::Tensor> weights(const torch::Tensor& x, int64_t i);
  Part part(int64_t head) const {
    return part_of(config_.combination, number_, head, config_.heads);
  }

 private:
  struct Heads {
    torch::Tensor query, key, value;  // [B, H, n, E]
  };
  Heads heads(const torch::Tensor& x);
  torch::Tensor fed_forward(const torch::Tensor& x);

  Config config_;
  int64_t number_;
  torch::nn::Linear in_proj_{nullptr}, out_proj_{nullptr}, linear1_{nullptr}, linear2_{nullptr};
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
};

class Model : public torch::nn::Module {
 public:
  explicit Model(const Config& config);
  // pixels [B, n] of 0 and 1 -> the logit of each being 1, given those before it.
  torch::Tensor forward(const torch::Tensor& pixels);
  // Pixels of which the first `given` are known, the others drawn with these uniform numbers [B, n].
  torch::Tensor completed(const torch::Tensor& pixels, int64_t given, const torch::Tensor& uniform);
  // The states each layer's attention is given.
  std::vector<torch::Tensor> states(const torch::Tensor& pixels);
  Layer& layer(int64_t i) { return *layers_[static_cast<size_t>(i)]; }
  const Config& config() const { return config_; }

 private:
  // What is read at positions first … : the pixel before, and the place of the one to come.
  torch::Tensor embedded(const torch::Tensor& before, int64_t first);
  torch::Tensor inputs_of(const torch::Tensor& pixels) const;

  Config config_;
  torch::nn::Embedding pixel_{nullptr}, row_{nullptr}, column_{nullptr};
  std::vector<std::shared_ptr<Layer>> layers_;
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear output_{nullptr};
};

}  // namespace fovea::systems::sparse_patterns
