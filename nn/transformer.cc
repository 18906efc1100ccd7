#include "fovea/nn/transformer.h"

#include <ATen/ATen.h>

#include <cmath>

namespace fovea::nn {
namespace {

torch::nn::LayerNorm register_norm(torch::nn::Module& module, int64_t width) {
  return module.register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
}

}  // namespace

EncoderImpl::EncoderImpl(const LayerOptions& layer, int64_t n, bool final_norm)
    : layer_options_(layer), layer_count_(n), final_norm_(final_norm) {
  reset();
}

void EncoderImpl::reset() {
  layers = register_module("layers", torch::nn::ModuleList());
  for (int64_t i = 0; i < layer_count_; ++i) layers->push_back(EncoderLayer(layer_options_));
  if (final_norm_) norm = register_norm(*this, layer_options_.width);
}

at::Tensor EncoderImpl::forward(at::Tensor x, const Attention& attention) {
  for (size_t i = 0; i < layers->size(); ++i)
    x = layer(static_cast<int64_t>(i)).forward(x, attention);
  return norm ? norm(x) : x;
}

DecoderImpl::DecoderImpl(const LayerOptions& layer, int64_t n, bool final_norm)
    : layer_options_(layer), layer_count_(n), final_norm_(final_norm) {
  reset();
}

void DecoderImpl::reset() {
  layers = register_module("layers", torch::nn::ModuleList());
  for (int64_t i = 0; i < layer_count_; ++i) layers->push_back(DecoderLayer(layer_options_));
  if (final_norm_) norm = register_norm(*this, layer_options_.width);
}

at::Tensor DecoderImpl::forward(at::Tensor x, const at::Tensor& memory, const Attention& self,
                                const Attention& cross) {
  for (size_t i = 0; i < layers->size(); ++i)
    x = layer(static_cast<int64_t>(i)).forward(x, memory, self, cross);
  return norm ? norm(x) : x;
}

DecoderCache DecoderImpl::start(const at::Tensor& memory, const at::Tensor& lengths) {
  DecoderCache cache{.self = std::vector<StepCache>(layers->size()),
                     .memory = {},
                     .readers = Readers(memory.size(0), lengths)};
  for (size_t i = 0; i < layers->size(); ++i) {
    cache.memory.push_back(layer(static_cast<int64_t>(i)).multihead_attn->project(memory, memory));
  }
  return cache;
}

at::Tensor DecoderImpl::step(at::Tensor x, DecoderCache& cache) {
  for (size_t i = 0; i < layers->size(); ++i) {
    DecoderLayerImpl& one = layer(static_cast<int64_t>(i));
    x = one.cross_step(one.self_step(x, cache.self[i]), cache.memory[i], cache.readers);
  }
  return norm ? norm(x) : x;
}

TransformerImpl::TransformerImpl(const TransformerOptions& options) : options_(options) { reset(); }

void TransformerImpl::reset() {
  const TransformerOptions& o = options_;
  encoder = register_module("encoder", Encoder(o.layer, o.encoder_layers, o.final_norm));
  decoder = register_module("decoder", Decoder(o.layer, o.decoder_layers, o.final_norm));
  for (at::Tensor& p : parameters()) {
    if (p.dim() > 1) torch::nn::init::xavier_uniform_(p);
  }
}

at::Tensor TransformerImpl::forward(const at::Tensor& source, const at::Tensor& target,
                                    const at::Tensor& source_lengths) {
  const Attention seen{.key_lengths = source_lengths};
  return decoder->forward(target, encoder->forward(source, seen), {.structure = Causal{}}, seen);
}

at::Tensor position_encoding(int64_t positions, int64_t width) {
  const at::Tensor position = at::arange(positions, at::kDouble).unsqueeze(1);
  const at::Tensor even = at::arange(0, width, 2, at::kDouble);
  const at::Tensor angle =
      position * at::exp(even * (-std::log(10000.0) / static_cast<double>(width)));
  at::Tensor table = at::zeros({positions, width}, at::kDouble);
  table.slice(1, 0, width, 2).copy_(at::sin(angle));
  table.slice(1, 1, width, 2).copy_(at::cos(angle).narrow(1, 0, width / 2));
  return table.to(at::kFloat);
}

}  // namespace fovea::nn
