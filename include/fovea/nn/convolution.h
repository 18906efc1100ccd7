// Light and dynamic convolutions (Wu et al. 2019, Pay Less Attention with Lightweight and Dynamic
// Convolutions): attention whose weights depend on the offset and not on a key.
//
//   o_{i,c} = sum_j softmax(w_{h(c)})_j x_{i + j - left, c},  h(c) = c heads / width
//
// w is learned (light), or a linear map of x_i (dynamic). Around it: a linear map to twice the width,
// a gated linear unit, the convolution, and a linear map.
#pragma once

#include <torch/nn.h>

#include "fovea/attend.h"
#include "fovea/nn/decoder_cache.h"

namespace fovea::nn {

enum class Kernels { kLight, kDynamic };
// Both: the kernel has its middle at the position. Causal: it ends there.
enum class Reach { kBoth, kCausal };
// At the ends of a sequence: positions outside are zero, so that weights on real positions sum to
// less than 1 (the paper's); or the softmax is over real positions only.
enum class Edges { kZeros, kRenormalised };

struct ConvolutionOptions {
  int64_t width = 0;
  int64_t heads = 1;   // kernels; must divide the width
  int64_t kernel = 3;  // positions a kernel covers; odd where it reaches both ways
  Kernels kernels = Kernels::kLight;
  Reach reach = Reach::kBoth;
  Edges edges = Edges::kZeros;
  double dropout = 0;  // DropConnect: of weights, after the softmax
};

// The convolution as a call of `attend`: scores are the kernel's numbers, read at the offset.
struct OffsetAttention {
  at::Tensor query, key;  // [B, heads, L, offsets]
  Choices choices;
};

class ConvolutionImpl : public torch::nn::Cloneable<ConvolutionImpl> {
 public:
  explicit ConvolutionImpl(const ConvolutionOptions& options);
  void reset() override;

  // x [B, L, width], lengths int [B] or undefined -> [B, L, width]. What is past a length counts as
  // outside of the sequence.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths = {});
  // The same without the last linear map.
  at::Tensor mixed(const at::Tensor& x, const at::Tensor& lengths);
  // New positions x [rows, n, width], which are appended to the cache: a causal convolution only.
  at::Tensor step_mixed(const at::Tensor& x, StepCache& cache);

  // The kernels at the positions of x, after the softmax: [B, L, heads, kernel].
  at::Tensor kernels(const at::Tensor& x, const at::Tensor& lengths = {});
  OffsetAttention as_attention(const at::Tensor& x, const at::Tensor& lengths = {});
  // The same as weights between positions [B, heads, L, L]: for pictures.
  at::Tensor weights(const at::Tensor& x, const at::Tensor& lengths = {});

  const ConvolutionOptions& options() const { return options_; }
  int64_t left() const;  // offsets before the position itself

  torch::nn::Linear linear1{nullptr}, linear2{nullptr};
  torch::nn::Linear weight_linear{nullptr};  // dynamic: [heads * kernel, width], without bias
  at::Tensor weight;                         // light: [heads, kernel]

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())})

 private:
  // Of a sequence that was gated already; `first` is the position of its first row.
  struct Place {
    int64_t first, end;  // end: of the sequence
    at::Tensor lengths;
  };
  at::Tensor gated(const at::Tensor& x, const at::Tensor& lengths);
  at::Tensor kernels_of(const at::Tensor& gated, const Place& place);
  at::Tensor outside(const at::Tensor& like, const Place& place) const;
  at::Tensor dropped(const at::Tensor& kernels) const;

  ConvolutionOptions options_;
};
TORCH_MODULE(Convolution);

}  // namespace fovea::nn
