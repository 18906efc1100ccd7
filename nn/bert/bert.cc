#include "fovea/nn/bert.h"

#include <ATen/ATen.h>

#include "nn/positive.h"
#include "nn/sublayer.h"

namespace fovea::nn {
namespace {

constexpr double kFirstSpread = 0.02;  // of all weights at first; the paper's

void check(const BertOptions& o) {
  check_positive("vocabulary", o.vocabulary);
  check_positive("width", o.width);
  check_positive("hidden", o.hidden);
  check_positive("layers", o.layers);
  check_positive("heads", o.heads);
  check_positive("context", o.context);
  check_positive("segments", o.segments);
  if (o.width % o.heads != 0)
    throw InvalidArgument("heads: " + std::to_string(o.heads) +
                          ", expected a divisor of the width " + std::to_string(o.width));
}

torch::nn::Linear drawn_linear(int64_t inputs, int64_t outputs) {
  torch::nn::Linear out(inputs, outputs);
  const at::NoGradGuard no_grad;
  out->weight.normal_(0, kFirstSpread);
  out->bias.zero_();
  return out;
}

torch::nn::Embedding drawn_embedding(int64_t rows, int64_t width) {
  torch::nn::Embedding out(rows, width);
  const at::NoGradGuard no_grad;
  out->weight.normal_(0, kFirstSpread);
  return out;
}

torch::nn::LayerNorm bert_norm(const BertOptions& o) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({o.width}).eps(o.epsilon));
}

at::Tensor hidden_activated(const at::Tensor& x, HiddenActivation activation) {
  switch (activation) {
    case HiddenActivation::kRelu:
      return at::relu(x);
    case HiddenActivation::kGeluTanh:
      return at::gelu(x, "tanh");
    case HiddenActivation::kGelu:
      break;
  }
  return at::gelu(x);
}

at::Tensor sequence_starts(const at::Tensor& offsets) {
  return offsets.slice(0, 0, -1).to(at::kLong);
}

// Queries, keys and values [total, heads, head width] each.
std::vector<at::Tensor> all_heads_of(const at::Tensor& projected, int64_t heads) {
  return projected.unflatten(-1, {3, heads, projected.size(-1) / (3 * heads)}).unbind(1);
}

}  // namespace

BertLayerImpl::BertLayerImpl(const BertOptions& options) : options_(options) { reset(); }

void BertLayerImpl::reset() {
  const BertOptions& o = options_;
  in_proj = register_module("in_proj", drawn_linear(o.width, 3 * o.width));
  out_proj = register_module("out_proj", drawn_linear(o.width, o.width));
  norm1 = register_module("norm1", bert_norm(o));
  linear1 = register_module("linear1", drawn_linear(o.width, o.hidden));
  linear2 = register_module("linear2", drawn_linear(o.hidden, o.width));
  norm2 = register_module("norm2", bert_norm(o));
}

at::Tensor BertLayerImpl::forward(const at::Tensor& x, const at::Tensor& offsets) {
  const double dropout = is_training() ? options_.dropout : 0;
  const auto all = all_heads_of(projected(x, in_proj), options_.heads);
  const at::Tensor heads = attend(all[0], all[1], all[2], {.structure = Ragged{offsets, offsets}},
                                  {.dropout_p = is_training() ? options_.attention_dropout : 0.0})
                               .flatten(1);
  const at::Tensor y = project_add_norm(x, heads, out_proj, norm1, dropout);
  return project_add_norm(y, hidden_activated(projected(y, linear1), options_.activation), linear2,
                          norm2, dropout);
}

at::Tensor BertLayerImpl::weights(const at::Tensor& x) {
  const auto all = all_heads_of(projected(x, in_proj), options_.heads);
  const auto first = [](const at::Tensor& rows) { return rows.transpose(0, 1).unsqueeze(0); };
  return fovea::weights(first(all[0]), first(all[1]), Choices{}).weights.squeeze(0);
}

BertImpl::BertImpl(const BertOptions& options) : options_(options) {
  check(options);
  reset();
}

void BertImpl::reset() {
  const BertOptions& o = options_;
  words = register_module("words", drawn_embedding(o.vocabulary, o.width));
  positions = register_module("positions", drawn_embedding(o.context, o.width));
  segments = register_module("segments", drawn_embedding(o.segments, o.width));
  norm = register_module("norm", bert_norm(o));
  layers = register_module("layers", torch::nn::ModuleList());
  for (int64_t i = 0; i < o.layers; ++i) layers->push_back(BertLayer(o));
}

at::Tensor BertImpl::embedded(const BertInput& input) {
  const at::Tensor first = sequence_starts(input.offsets),
                   lengths = input.offsets.slice(0, 1).to(at::kLong) - first;
  if (const int64_t longest = lengths.numel() == 0 ? 0 : lengths.max().item<int64_t>();
      longest > options_.context)
    throw InvalidArgument("tokens: a sequence of " + std::to_string(longest) +
                          ", expected at most " + std::to_string(options_.context) +
                          ", the context");
  const at::Tensor place =
      at::arange(input.tokens.size(0), input.tokens.options()) - first.repeat_interleave(lengths);
  const at::Tensor segment =
      input.segments.defined() ? segments(input.segments) : segments->weight.narrow(0, 0, 1);
  return at::dropout(norm(words(input.tokens) + positions(place) + segment), options_.dropout,
                     is_training());
}

at::Tensor BertImpl::forward(const BertInput& input) {
  at::Tensor x = embedded(input);
  for (int64_t i = 0; i < options_.layers; ++i) x = layer(i).forward(x, input.offsets);
  return x;
}

std::vector<at::Tensor> BertImpl::states(const BertInput& input) {
  std::vector<at::Tensor> all = {embedded(input)};
  for (int64_t i = 0; i < options_.layers; ++i)
    all.push_back(layer(i).forward(all.back(), input.offsets));
  return all;
}

at::Tensor BertImpl::weights(const BertInput& input) {
  if (input.offsets.size(0) != 2)
    throw InvalidArgument("offsets: " + std::to_string(input.offsets.size(0) - 1) +
                          " sequences, expected one");
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> before = states(input);
  std::vector<at::Tensor> all;
  for (int64_t i = 0; i < options_.layers; ++i)
    all.push_back(layer(i).weights(before[static_cast<size_t>(i)]));
  return at::stack(all);
}

MaskedWordsImpl::MaskedWordsImpl(const BertOptions& options) : options_(options) { reset(); }

void MaskedWordsImpl::reset() {
  transform = register_module("transform", drawn_linear(options_.width, options_.width));
  norm = register_module("norm", bert_norm(options_));
  bias = register_parameter("bias", at::zeros({options_.vocabulary}));
}

at::Tensor MaskedWordsImpl::forward(const at::Tensor& states, const at::Tensor& words) {
  return projected(norm(hidden_activated(projected(states, transform), options_.activation)), words,
                   bias);
}

at::Tensor first_states(const at::Tensor& states, const at::Tensor& offsets) {
  return states.index_select(0, sequence_starts(offsets));
}

at::Tensor mean_states(const at::Tensor& states, const at::Tensor& offsets) {
  const int64_t sequences = offsets.size(0) - 1;
  const at::Tensor query = at::zeros({sequences, 1, 1}, states.options()),
                   key = at::zeros({states.size(0), 1, 1}, states.options());
  const at::Tensor one_each = at::arange(sequences + 1, offsets.options());
  return attend(query, key, states.unsqueeze(1),
                {.score = Constant{}, .structure = Ragged{one_each, offsets}})
      .squeeze(1);
}

}  // namespace fovea::nn
