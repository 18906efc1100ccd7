#include "fovea/nn/language_model.h"

#include <ATen/ATen.h>

#include "nn/positive.h"
#include "nn/products/product.h"

namespace fovea::nn {
namespace {

constexpr double kSpread = 0.02;  // of embeddings at first, as GPT-2 has them

torch::nn::Linear plain(int64_t inputs, int64_t outputs) {
  return torch::nn::Linear(torch::nn::LinearOptions(inputs, outputs).bias(false));
}

void check(const LanguageModelOptions& o) {
  check_positive("vocabulary", o.vocabulary);
  check_positive("width", o.width);
  check_positive("hidden", o.hidden);
  check_positive("layers", o.layers);
  check_positive("context", o.context);
}

}  // namespace

LanguageNormImpl::LanguageNormImpl(NormKind kind, int64_t width) : kind_(kind), width_(width) {
  reset();
}

void LanguageNormImpl::reset() {
  weight = register_parameter("weight", at::ones({width_}));
  if (kind_ == NormKind::kLayer) bias = register_parameter("bias", at::zeros({width_}));
}

at::Tensor LanguageNormImpl::forward(const at::Tensor& x) {
  if (kind_ == NormKind::kLayer) return at::layer_norm(x, {width_}, weight, bias, kEpsilon);
  return rms_norm(x, weight, kEpsilon);
}

LanguageLayerImpl::LanguageLayerImpl(const LanguageModelOptions& options) : options_(options) {
  reset();
}

void LanguageLayerImpl::reset() {
  attention = register_module(
      "attention", GroupedHeads(GroupedHeadsOptions{
                       .width = options_.width,
                       .heads = options_.heads,
                       .key_heads = options_.key_heads,
                       .rotary_base = options_.positions == Positions::kRotary ? 10000.0 : 0.0}));
  w1 = register_module("w1", plain(options_.width, options_.hidden));
  w2 = register_module("w2", plain(options_.hidden, options_.width));
  w3 = register_module("w3", plain(options_.width, options_.hidden));
  attention_norm = register_module("attention_norm", LanguageNorm(options_.norm, options_.width));
  ffn_norm = register_module("ffn_norm", LanguageNorm(options_.norm, options_.width));
}

at::Tensor LanguageLayerImpl::fed_forward(const at::Tensor& x) {
  const at::Tensor y = ffn_norm(x);
  return x + dropped(projected(at::silu(projected(y, w1)) * projected(y, w3), w2));
}
at::Tensor LanguageLayerImpl::forward(const at::Tensor& x) {
  return fed_forward(x + dropped(attention->forward(attention_norm(x))));
}
at::Tensor LanguageLayerImpl::step(const at::Tensor& x, StepCache& cache) {
  return fed_forward(x + attention->step(attention_norm(x), cache));
}

LanguageModelImpl::LanguageModelImpl(const LanguageModelOptions& options) : options_(options) {
  check(options);
  reset();
}

void LanguageModelImpl::reset() {
  const at::NoGradGuard no_grad;
  tok_embeddings =
      register_module("tok_embeddings", torch::nn::Embedding(options_.vocabulary, options_.width));
  tok_embeddings->weight.normal_(0, kSpread);
  if (options_.positions == Positions::kLearned) {
    pos_embeddings =
        register_module("pos_embeddings", torch::nn::Embedding(options_.context, options_.width));
    pos_embeddings->weight.normal_(0, kSpread);
  }
  layers = register_module("layers", torch::nn::ModuleList());
  for (int64_t i = 0; i < options_.layers; ++i) layers->push_back(LanguageLayer(options_));
  norm = register_module("norm", LanguageNorm(options_.norm, options_.width));
  if (!options_.tie) output = register_module("output", plain(options_.width, options_.vocabulary));
}

at::Tensor LanguageModelImpl::output_weight() const {
  return output.is_empty() ? tok_embeddings->weight : output->weight;
}

at::Tensor LanguageModelImpl::embedded(const at::Tensor& tokens, int64_t first) {
  const int64_t last = first + tokens.size(1);
  if (last > options_.context)
    throw InvalidArgument("tokens: " + std::to_string(last) + " positions, expected at most " +
                          std::to_string(options_.context) + ", the context");
  at::Tensor x = tok_embeddings(tokens);
  if (!pos_embeddings.is_empty()) x = x + pos_embeddings->weight.narrow(0, first, tokens.size(1));
  return at::dropout(x, options_.dropout, is_training());
}

at::Tensor LanguageModelImpl::forward(const at::Tensor& tokens) {
  at::Tensor x = embedded(tokens, 0);
  for (int64_t i = 0; i < options_.layers; ++i) x = layer(i).forward(x);
  return projected(norm(x), output_weight());
}

at::Tensor LanguageModelImpl::step(const at::Tensor& tokens, LanguageCache& cache) {
  const at::NoGradGuard no_grad;
  at::Tensor x = embedded(tokens, cache.length());
  cache.layers.resize(static_cast<size_t>(options_.layers));
  for (int64_t i = 0; i < options_.layers; ++i)
    x = layer(i).step(x, cache.layers[static_cast<size_t>(i)]);
  return projected(norm(x), output_weight());
}

at::Tensor LanguageModelImpl::after_each_layer(const at::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  at::Tensor x = embedded(tokens, 0);
  std::vector<at::Tensor> all;
  for (int64_t i = 0; i < options_.layers; ++i) {
    x = layer(i).forward(x);
    all.push_back(projected(norm(x), output_weight()));
  }
  return at::stack(all);
}

at::Tensor LanguageModelImpl::weights(const at::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  at::Tensor x = embedded(tokens, 0);
  std::vector<at::Tensor> all;
  for (int64_t i = 0; i < options_.layers; ++i) {
    all.push_back(layer(i).weights(x));
    x = layer(i).forward(x);
  }
  return at::stack(all);
}

}  // namespace fovea::nn
