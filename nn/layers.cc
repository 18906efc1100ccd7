#include "fovea/nn/layers.h"

#include <ATen/ATen.h>

namespace fovea::nn {
namespace {

torch::nn::LayerNorm layer_norm(int64_t width) { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})); }

MultiHeadOptions attention_options(const LayerOptions& o) {
  return {.width = o.width, .heads = o.heads, .dropout = o.attention_dropout};
}

// One sublayer with its residual and its norm, in either order.
template <class Sublayer>
at::Tensor residual(const at::Tensor& x, torch::nn::LayerNorm& norm, const LayerOptions& options, bool training, Sublayer f) {
  const bool pre = options.order == NormOrder::kPre;
  const at::Tensor y = at::dropout(f(pre ? norm(x) : x), options.dropout, training);
  return pre ? x + y : norm(x + y);
}

at::Tensor feed_forward(const at::Tensor& x, torch::nn::Linear& in, torch::nn::Linear& out, double dropout, bool training) {
  return out(at::dropout(at::relu(in(x)), dropout, training));
}

}  // namespace

EncoderLayerImpl::EncoderLayerImpl(const LayerOptions& options) : options_(options) {
  self_attn = register_module("self_attn", MultiHead(attention_options(options)));
  linear1 = register_module("linear1", torch::nn::Linear(options.width, options.hidden));
  linear2 = register_module("linear2", torch::nn::Linear(options.hidden, options.width));
  norm1 = register_module("norm1", layer_norm(options.width));
  norm2 = register_module("norm2", layer_norm(options.width));
}

at::Tensor EncoderLayerImpl::forward(const at::Tensor& x, const Attention& attention) {
  const at::Tensor y = residual(x, norm1, options_, is_training(),
                                [&](const at::Tensor& z) { return self_attn->forward(z, attention); });
  return residual(y, norm2, options_, is_training(), [&](const at::Tensor& z) {
    return feed_forward(z, linear1, linear2, options_.dropout, is_training());
  });
}

DecoderLayerImpl::DecoderLayerImpl(const LayerOptions& options) : options_(options) {
  self_attn = register_module("self_attn", MultiHead(attention_options(options)));
  multihead_attn = register_module("multihead_attn", MultiHead(attention_options(options)));
  linear1 = register_module("linear1", torch::nn::Linear(options.width, options.hidden));
  linear2 = register_module("linear2", torch::nn::Linear(options.hidden, options.width));
  norm1 = register_module("norm1", layer_norm(options.width));
  norm2 = register_module("norm2", layer_norm(options.width));
  norm3 = register_module("norm3", layer_norm(options.width));
}

template <class SelfAttention, class CrossAttention>
at::Tensor DecoderLayerImpl::run(at::Tensor x, SelfAttention self, CrossAttention cross) {
  x = residual(x, norm1, options_, is_training(), self);
  x = residual(x, norm2, options_, is_training(), cross);
  return residual(x, norm3, options_, is_training(), [&](const at::Tensor& z) {
    return feed_forward(z, linear1, linear2, options_.dropout, is_training());
  });
}

at::Tensor DecoderLayerImpl::forward(const at::Tensor& x, const at::Tensor& memory, const Attention& self,
                                     const Attention& cross) {
  return run(
      x, [&](const at::Tensor& z) { return self_attn->forward(z, self); },
      [&](const at::Tensor& z) { return multihead_attn->forward(z, memory, memory, cross); });
}

at::Tensor DecoderLayerImpl::after_self(const at::Tensor& x, const Attention& self) {
  return residual(x, norm1, options_, is_training(), [&](const at::Tensor& z) { return self_attn->forward(z, self); });
}

at::Tensor DecoderLayerImpl::self_step(const at::Tensor& x, DecoderCache& cache) {
  return residual(x, norm1, options_, is_training(), [&](const at::Tensor& z) { return self_attn->step(z, cache.self); });
}

at::Tensor DecoderLayerImpl::step(const at::Tensor& x, DecoderCache& cache, const Attention& cross) {
  return run(
      x, [&](const at::Tensor& z) { return self_attn->step(z, cache.self); },
      [&](const at::Tensor& z) { return multihead_attn->attend_cached(z, cache.memory, cross); });
}

}  // namespace fovea::nn
