// What comes between the word vectors and the queries, so that a word knows its neighbours.
#pragma once

#include <torch/nn.h>

#include "fovea/nn/recurrent.h"

namespace fovea::systems {

class Context : public torch::nn::Module {
 public:
  // Packed word vectors [total, width] of the sentences between `bounds`: [total, output_width()].
  virtual at::Tensor forward(const at::Tensor& x, const at::Tensor& bounds) = 0;
  virtual int64_t output_width() const = 0;
};

// A Transformer's layer with relative positions; those further apart than `reach` look the same.
class SelfAttentionContext : public Context {
 public:
  SelfAttentionContext(int64_t width, int64_t heads, int64_t reach = 4);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& bounds) override;
  int64_t output_width() const override { return width_; }

 private:
  const int64_t width_, heads_, reach_;
  torch::nn::Linear in_{nullptr}, out_{nullptr}, feed1_{nullptr}, feed2_{nullptr};
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
  at::Tensor positions_;  // [2 reach + 1, width of a head]
};

// An LSTM read from both ends, as Lin et al. 2017 have it.
class RecurrentContext : public Context {
 public:
  RecurrentContext(int64_t width, int64_t state, double dropout);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& bounds) override;
  int64_t output_width() const override { return encoder_->state_width(); }

 private:
  const double dropout_;  // of what it reads
  nn::Recurrent encoder_{nullptr};
};

}  // namespace fovea::systems
