// Transformers that pay less: self-attention is a light or dynamic convolution (Wu et al. 2019), or
// all is quaternions (the Quaternion Transformer, Tay et al. 2019). Decoders attend to the encoder in
// every layer, with real or with quaternion attention.
#pragma once

#include <variant>
#include <vector>

#include "fovea/nn/convolution.h"
#include "fovea/nn/layers.h"
#include "fovea/nn/quaternion.h"

namespace fovea::nn {

enum class Mixing { kLight, kDynamic, kQuaternion };

struct LightTransformerOptions {
  Mixing mixing = Mixing::kDynamic;
  // attention_dropout is also that of a kernel's weights (DropConnect).
  LayerOptions layer;
  int64_t encoder_layers = 6, decoder_layers = 6;
  bool final_norm = false;  // after the last layer of each stack
  // Of the layers from the lowest up; the last serves all layers above.
  std::vector<int64_t> kernels = {3, 7};
  Edges edges = Edges::kZeros;
};

// A layer of either stack. Encoders reach both ways; decoders are causal and read a memory.
enum class Stack { kEncoder, kDecoder };

class LightLayerImpl : public torch::nn::Cloneable<LightLayerImpl> {
 public:
  LightLayerImpl(const LightTransformerOptions& options, Stack stack, int64_t kernel);
  void reset() override;

  // The three sublayers, each with its residual and norm. x [B, L, width]; lengths int [B] of x, or
  // undefined.
  at::Tensor mix(const at::Tensor& x, const at::Tensor& lengths);
  at::Tensor read(const at::Tensor& x, const HeadsCache& memory, const at::Tensor& lengths);
  at::Tensor feed(const at::Tensor& x);
  // Decoding: new positions x [rows, n, width].
  at::Tensor mix_step(const at::Tensor& x, StepCache& cache);
  at::Tensor read_step(const at::Tensor& x, const HeadsCache& memory, const Readers& readers);

  HeadsCache project(const at::Tensor& memory);  // its keys and values, for `read`

  // For pictures: [B, heads, L, L] of `mix` and [B, heads, L, S] of `read`; a quaternion head counts
  // four times. x is what the sublayer is given.
  at::Tensor mix_weights(const at::Tensor& x, const at::Tensor& lengths);
  at::Tensor read_weights(const at::Tensor& x, const HeadsCache& memory, const at::Tensor& lengths);
  // [B, L, heads, kernel]; undefined where a layer does not convolve.
  at::Tensor kernels(const at::Tensor& x, const at::Tensor& lengths);

 private:
  double dropout() const { return is_training() ? options_.layer.dropout : 0; }
  at::Tensor given(const at::Tensor& x, torch::nn::LayerNorm& norm) {
    return options_.layer.order == NormOrder::kPre ? norm(x) : x;
  }
  at::Tensor read_heads(const at::Tensor& x, const HeadsCache& memory, const Attention& attention);

  LightTransformerOptions options_;
  Stack stack_;
  int64_t kernel_;
  std::variant<Convolution, QuaternionMultiHead> self_{Convolution{nullptr}};
  std::variant<MultiHead, QuaternionMultiHead> cross_{MultiHead{nullptr}};
  std::variant<torch::nn::Linear, QuaternionLinear> linear1_{torch::nn::Linear{nullptr}},
      linear2_{torch::nn::Linear{nullptr}};
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr}, norm3_{nullptr};
};
TORCH_MODULE(LightLayer);

class LightTransformerImpl : public torch::nn::Cloneable<LightTransformerImpl> {
 public:
  explicit LightTransformerImpl(const LightTransformerOptions& options);
  void reset() override;

  // source [B, S, width], target [B, T, width], lengths int [B] or undefined.
  at::Tensor forward(const at::Tensor& source, const at::Tensor& target,
                     const at::Tensor& source_lengths = {});
  at::Tensor encode(at::Tensor x, const at::Tensor& lengths = {});
  at::Tensor decode(at::Tensor x, const at::Tensor& memory, const at::Tensor& lengths = {});
  // Decoding one position at a time.
  DecoderCache start(const at::Tensor& memory, const at::Tensor& lengths = {});
  at::Tensor step(at::Tensor x, DecoderCache& cache);

  const LightTransformerOptions& options() const { return options_; }
  LightLayerImpl& encoder_layer(int64_t i) { return layer(encoder_, i); }
  LightLayerImpl& decoder_layer(int64_t i) { return layer(decoder_, i); }
  at::Tensor finished(const at::Tensor& x);  // the decoder's final norm, where there is one

 protected:
  FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(at::Tensor())})

 private:
  static LightLayerImpl& layer(torch::nn::ModuleList& list, int64_t i) {
    return *list->at<LightLayerImpl>(static_cast<size_t>(i)).as<LightLayerImpl>();
  }
  LightTransformerOptions options_;
  torch::nn::ModuleList encoder_{nullptr}, decoder_{nullptr};
  torch::nn::LayerNorm encoder_norm_{nullptr}, decoder_norm_{nullptr};
};
TORCH_MODULE(LightTransformer);

}  // namespace fovea::nn
