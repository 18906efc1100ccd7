#include "fovea/nn/layers.h"

#include <ATen/ATen.h>

#include "nn/sublayer.h"

namespace fovea::nn {
namespace {

torch::nn::LayerNorm layer_norm(int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

MultiHeadOptions attention_options(const LayerOptions& o) {
  return {.width = o.width, .heads = o.heads, .dropout = o.attention_dropout};
}

}  // namespace

EncoderLayerImpl::EncoderLayerImpl(const LayerOptions& options) : options_(options) { reset(); }

void EncoderLayerImpl::reset() {
  self_attn = register_module("self_attn", MultiHead(attention_options(options_)));
  linear1 = register_module("linear1", torch::nn::Linear(options_.width, options_.hidden));
  linear2 = register_module("linear2", torch::nn::Linear(options_.hidden, options_.width));
  norm1 = register_module("norm1", layer_norm(options_.width));
  norm2 = register_module("norm2", layer_norm(options_.width));
}

at::Tensor EncoderLayerImpl::forward(const at::Tensor& x, const Attention& attention) {
  const at::Tensor y =
      mixing_sublayer(x, self_attn->out_proj, norm1, options_.order, dropout(),
                      [&](const at::Tensor& z) { return self_attn->heads(z, z, z, attention); });
  return feed_forward_sublayer(y, linear1, linear2, norm2, options_.order, dropout());
}

at::Tensor EncoderLayerImpl::step(const at::Tensor& x, StepCache& cache,
                                  const Attention& attention) {
  const at::Tensor y = mixing_sublayer(
      x, self_attn->out_proj, norm1, options_.order, dropout(),
      [&](const at::Tensor& z) { return self_attn->step_heads(z, cache, attention); });
  return feed_forward_sublayer(y, linear1, linear2, norm2, options_.order, dropout());
}

DecoderLayerImpl::DecoderLayerImpl(const LayerOptions& options) : options_(options) { reset(); }

void DecoderLayerImpl::reset() {
  self_attn = register_module("self_attn", MultiHead(attention_options(options_)));
  multihead_attn = register_module("multihead_attn", MultiHead(attention_options(options_)));
  linear1 = register_module("linear1", torch::nn::Linear(options_.width, options_.hidden));
  linear2 = register_module("linear2", torch::nn::Linear(options_.hidden, options_.width));
  norm1 = register_module("norm1", layer_norm(options_.width));
  norm2 = register_module("norm2", layer_norm(options_.width));
  norm3 = register_module("norm3", layer_norm(options_.width));
}

at::Tensor DecoderLayerImpl::after_self(const at::Tensor& x, const Attention& self) {
  return mixing_sublayer(x, self_attn->out_proj, norm1, options_.order, dropout(),
                         [&](const at::Tensor& z) { return self_attn->heads(z, z, z, self); });
}

at::Tensor DecoderLayerImpl::forward(const at::Tensor& x, const at::Tensor& memory,
                                     const Attention& self, const Attention& cross) {
  const at::Tensor y = mixing_sublayer(
      after_self(x, self), multihead_attn->out_proj, norm2, options_.order, dropout(),
      [&](const at::Tensor& z) { return multihead_attn->heads(z, memory, memory, cross); });
  return feed_forward_sublayer(y, linear1, linear2, norm3, options_.order, dropout());
}

at::Tensor DecoderLayerImpl::self_step(const at::Tensor& x, StepCache& cache) {
  return mixing_sublayer(x, self_attn->out_proj, norm1, options_.order, dropout(),
                         [&](const at::Tensor& z) { return self_attn->step_heads(z, cache); });
}

at::Tensor DecoderLayerImpl::cross_step(const at::Tensor& after_self, const HeadsCache& memory,
                                        const Readers& readers) {
  const at::Tensor y =
      mixing_sublayer(after_self, multihead_attn->out_proj, norm2, options_.order, dropout(),
                      [&](const at::Tensor& z) {
                        return readers.scattered(multihead_attn->cached_heads(
                            readers.gathered(z), memory, {.key_lengths = readers.lengths()}));
                      });
  return feed_forward_sublayer(y, linear1, linear2, norm3, options_.order, dropout());
}

}  // namespace fovea::nn
