// Quaternion layers (Tay et al. 2019, Lightweight and Efficient Neural Natural Language Processing
// with Quaternion Networks). A row of `width` numbers is width / 4 quaternions: four blocks, the
// parts r, i, j and k.
#pragma once

#include <torch/nn.h>

#include "fovea/nn/multi_head.h"

namespace fovea::nn {

// The Hamilton product of quaternions [..., 4 n] by quaternions [..., 4 n], each with each at the
// same place: (a0 + a1 i + a2 j + a3 k)(b0 + b1 i + b2 j + b3 k).
at::Tensor hamilton_product(const at::Tensor& a, const at::Tensor& b);

// y = W x + b, where W is a matrix of quaternions and x a vector of them. It has a quarter of the
// weights of a linear layer of this size.
class QuaternionLinearImpl : public torch::nn::Cloneable<QuaternionLinearImpl> {
 public:
  // Both widths are multiples of 4.
  QuaternionLinearImpl(int64_t inputs, int64_t outputs);
  void reset() override;
  at::Tensor forward(const at::Tensor& x);  // [..., inputs] -> [..., outputs]
  // The matrix of real numbers that does the same: [outputs, inputs], differentiable.
  at::Tensor real_weight() const;

  at::Tensor weight;  // [4, outputs / 4, inputs / 4]: r, i, j, k
  at::Tensor bias;    // [outputs]

 private:
  int64_t inputs_, outputs_;
};
TORCH_MODULE(QuaternionLinear);

// Attention between quaternions. The score of a query and a key is their Hamilton product, summed
// over a head's quaternions: four numbers. Each of the four parts has its own softmax over the keys,
// and mixes its own part of the values.
class QuaternionMultiHeadImpl : public torch::nn::Cloneable<QuaternionMultiHeadImpl> {
 public:
  // Of the options: width, a multiple of 4 * heads; heads; dropout.
  explicit QuaternionMultiHeadImpl(const MultiHeadOptions& options);
  void reset() override;

  // query [B, L, width], memory [B, S, width] -> [B, L, width]
  at::Tensor forward(const at::Tensor& query, const at::Tensor& memory,
                     const Attention& attention = {});
  // The same without the output projection, and the parts of it that decoding and pictures need: see
  // MultiHead. Of each head a memory's cache has four: r, i, j, k.
  at::Tensor heads(const at::Tensor& query, const at::Tensor& memory, const Attention& attention);
  HeadsCache project(const at::Tensor& memory);
  at::Tensor cached_heads(const at::Tensor& query, const HeadsCache& cache,
                          const Attention& attention);
  at::Tensor step_heads(const at::Tensor& x, StepCache& cache);
  // [B, 4 heads, L, S]: the parts r, i, j, k of the first head, then of the next.
  at::Tensor weights(const at::Tensor& query, const HeadsCache& cache, const Attention& attention);

  const MultiHeadOptions& options() const { return options_; }

  QuaternionLinear query_proj{nullptr}, key_proj{nullptr}, value_proj{nullptr}, out_proj{nullptr};

 protected:
  FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(Attention())})

 private:
  // [B, L, width] as [B, heads, L, width / heads]: the four parts of a head's quaternions.
  at::Tensor split(const at::Tensor& x) const;
  at::Tensor faced(const at::Tensor& x) const;
  HeadsCache for_faces(const HeadsCache& heads) const;

  MultiHeadOptions options_;
};
TORCH_MODULE(QuaternionMultiHead);

}  // namespace fovea::nn
