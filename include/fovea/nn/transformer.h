// The Transformer's two stacks, with the names of torch.nn.Transformer: encoder.layers.0 ...,
// encoder.norm, decoder ...
#pragma once

#include "fovea/nn/layers.h"

namespace fovea::nn {

struct TransformerOptions {
  LayerOptions layer;
  int64_t encoder_layers = 6, decoder_layers = 6;
  bool final_norm =
      true;  // encoder.norm and decoder.norm, which torch.nn.Transformer has for both kinds of norm
};

class EncoderImpl : public torch::nn::Cloneable<EncoderImpl> {
 public:
  EncoderImpl(const LayerOptions& layer, int64_t layers, bool final_norm);
  void reset() override;
  at::Tensor forward(at::Tensor x, const Attention& attention = {});

  torch::nn::ModuleList layers{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  EncoderLayerImpl& layer(int64_t i) {
    return *layers->at<EncoderLayerImpl>(i).as<EncoderLayerImpl>();
  }

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(Attention())})

 private:
  LayerOptions layer_options_;
  int64_t layer_count_;
  bool final_norm_;
};
TORCH_MODULE(Encoder);

class DecoderImpl : public torch::nn::Cloneable<DecoderImpl> {
 public:
  DecoderImpl(const LayerOptions& layer, int64_t layers, bool final_norm);
  void reset() override;
  at::Tensor forward(at::Tensor x, const at::Tensor& memory, const Attention& self,
                     const Attention& cross);

  // Decoding one position at a time: the memory [B, S, width] is projected once; lengths int [B] or
  // undefined.
  DecoderCache start(const at::Tensor& memory, const at::Tensor& lengths = {});
  at::Tensor step(at::Tensor x, DecoderCache& cache);

  torch::nn::ModuleList layers{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  DecoderLayerImpl& layer(int64_t i) {
    return *layers->at<DecoderLayerImpl>(i).as<DecoderLayerImpl>();
  }

 private:
  LayerOptions layer_options_;
  int64_t layer_count_;
  bool final_norm_;
};
TORCH_MODULE(Decoder);

class TransformerImpl : public torch::nn::Cloneable<TransformerImpl> {
 public:
  explicit TransformerImpl(const TransformerOptions& options);
  void reset() override;
  // source [B, S, width], target [B, T, width], lengths int [B] or undefined; the target sees
  // itself causally.
  at::Tensor forward(const at::Tensor& source, const at::Tensor& target,
                     const at::Tensor& source_lengths = {});

  Encoder encoder{nullptr};
  Decoder decoder{nullptr};

 protected:
  FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(at::Tensor())})

 private:
  TransformerOptions options_;
};
TORCH_MODULE(Transformer);

// sin and cos of pos / 10000^(2i/d) in even and odd columns: [positions, width]. If the width is
// odd, the last column is a sine.
at::Tensor position_encoding(int64_t positions, int64_t width);

}  // namespace fovea::nn
