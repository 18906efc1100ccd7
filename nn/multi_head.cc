#include "fovea/nn/multi_head.h"

#include <ATen/ATen.h>

#include "engine/call/facts.h"
#include "nn/products/product.h"
#include "nn/split_heads.h"

namespace fovea::nn {
namespace {

void check(const MultiHeadOptions& o) {
  if (o.width <= 0 || o.heads <= 0 || o.width % o.heads != 0) {
    throw InvalidArgument("heads: " + std::to_string(o.heads) +
                          ", expected a divisor of the width " + std::to_string(o.width));
  }
  if (o.dropout < 0 || o.dropout >= 1)
    throw InvalidArgument("dropout: " + std::to_string(o.dropout) + ", expected 0 <= p < 1");
}

}  // namespace

Structure keep(at::Tensor mask) { return Keep{std::move(mask)}; }
Structure drop(at::Tensor mask) {
  if (mask.scalar_type() != at::kBool)
    throw InvalidArgument("mask: expected bool, got " + std::string(mask.dtype().name()));
  return Keep{mask.logical_not()};
}

MultiHeadImpl::MultiHeadImpl(const MultiHeadOptions& options) : options_(options) {
  check(options);
  reset();
}

void MultiHeadImpl::reset() {
  const int64_t d = options_.width;
  const int64_t key_width = options_.key_width > 0 ? options_.key_width : d;
  const int64_t value_width = options_.value_width > 0 ? options_.value_width : d;
  if (key_width == d && value_width == d) {
    in_proj_weight_ = register_parameter("in_proj_weight", at::empty({3 * d, d}));
  } else {
    q_proj_weight_ = register_parameter("q_proj_weight", at::empty({d, d}));
    k_proj_weight_ = register_parameter("k_proj_weight", at::empty({d, key_width}));
    v_proj_weight_ = register_parameter("v_proj_weight", at::empty({d, value_width}));
  }
  if (options_.bias) in_proj_bias_ = register_parameter("in_proj_bias", at::empty({3 * d}));
  out_proj = register_module("out_proj",
                             torch::nn::Linear(torch::nn::LinearOptions(d, d).bias(options_.bias)));
  reset_parameters();
}

void MultiHeadImpl::reset_parameters() {
  for (const at::Tensor& w : {in_proj_weight_, q_proj_weight_, k_proj_weight_, v_proj_weight_}) {
    if (w.defined()) torch::nn::init::xavier_uniform_(w);
  }
  if (in_proj_bias_.defined()) {
    torch::nn::init::zeros_(in_proj_bias_);
    torch::nn::init::zeros_(out_proj->bias);
  }
}

at::Tensor MultiHeadImpl::project_query(const at::Tensor& query) {
  const int64_t d = options_.width;
  const at::Tensor weight =
      in_proj_weight_.defined() ? in_proj_weight_.narrow(0, 0, d) : q_proj_weight_;
  const at::Tensor bias = in_proj_bias_.defined() ? in_proj_bias_.narrow(0, 0, d) : at::Tensor();
  return split_heads(projected(query, weight, bias), options_.heads);
}

HeadsCache MultiHeadImpl::project(const at::Tensor& key, const at::Tensor& value) {
  const int64_t d = options_.width;
  if (in_proj_weight_.defined() && key.is_same(value)) {  // one product for both
    const at::Tensor bias =
        in_proj_bias_.defined() ? in_proj_bias_.narrow(0, d, 2 * d) : at::Tensor();
    const std::vector<at::Tensor> both =
        projected(key, in_proj_weight_.narrow(0, d, 2 * d), bias).chunk(2, -1);
    return {split_heads(both[0], options_.heads), split_heads(both[1], options_.heads)};
  }
  const at::Tensor key_weight =
      in_proj_weight_.defined() ? in_proj_weight_.narrow(0, d, d) : k_proj_weight_;
  const at::Tensor value_weight =
      in_proj_weight_.defined() ? in_proj_weight_.narrow(0, 2 * d, d) : v_proj_weight_;
  const at::Tensor key_bias =
      in_proj_bias_.defined() ? in_proj_bias_.narrow(0, d, d) : at::Tensor();
  const at::Tensor value_bias =
      in_proj_bias_.defined() ? in_proj_bias_.narrow(0, 2 * d, d) : at::Tensor();
  return {split_heads(projected(key, key_weight, key_bias), options_.heads),
          split_heads(projected(value, value_weight, value_bias), options_.heads)};
}

at::Tensor MultiHeadImpl::mix(const at::Tensor& query, const HeadsCache& cache,
                              const Attention& attention) {
  const at::Tensor heads = attend(query, cache.key, cache.value,
                                  {.score = attention.score, .structure = attention.structure},
                                  {.dropout_p = is_training() ? options_.dropout : 0.0,
                                   .key_lengths = attention.key_lengths,
                                   .query_offset = attention.query_offset});
  return join_heads(heads);
}

at::Tensor MultiHeadImpl::heads(const at::Tensor& query, const at::Tensor& key,
                                const at::Tensor& value, const Attention& attention) {
  if (in_proj_weight_.defined() && query.is_same(key) &&
      key.is_same(value)) {  // self attention: one product for all three
    const std::vector<at::Tensor> all =
        projected(query, in_proj_weight_, in_proj_bias_).chunk(3, -1);
    return mix(split_heads(all[0], options_.heads),
               {split_heads(all[1], options_.heads), split_heads(all[2], options_.heads)},
               attention);
  }
  return mix(project_query(query), project(key, value), attention);
}

at::Tensor MultiHeadImpl::forward(const at::Tensor& query, const at::Tensor& key,
                                  const at::Tensor& value, const Attention& attention) {
  if (!key.defined() && value.defined())
    throw InvalidArgument("key: missing, expected a tensor where a value is given");
  const at::Tensor& keys = key.defined() ? key : query;
  return projected(heads(query, keys, value.defined() ? value : keys, attention), out_proj);
}

at::Tensor MultiHeadImpl::cached_heads(const at::Tensor& query, const HeadsCache& cache,
                                       const Attention& attention) {
  return mix(project_query(query), cache, attention);
}

at::Tensor MultiHeadImpl::step_heads(const at::Tensor& x, StepCache& cache,
                                     const Attention& attention) {
  if (!in_proj_weight_.defined())
    throw InvalidArgument(
        "step_heads: keys of another width than the model's, expected self attention");
  const int64_t d = options_.width, before = cache.length();
  const at::Tensor all = projected(x, in_proj_weight_, in_proj_bias_);
  cache.append(all.narrow(-1, d, 2 * d));
  const at::Tensor query = split_heads(all.narrow(-1, 0, d), options_.heads);
  const Structure& structure = attention.structure;
  const bool causal =
      structure.all_of.size() == 1 && std::holds_alternative<Causal>(structure.all_of[0]);
  // One new position sees all there are; where it stands matters to modifiers only.
  if (causal && attention.score.modifiers.empty() && x.size(1) == 1)
    return mix(query, cache.heads(options_.heads), {.score = attention.score});
  return mix(query, cache.heads(options_.heads),
             {.structure = structure,
              .score = attention.score,
              .query_offset = engine::has_bottom_right(structure) ? PerItem() : PerItem(before)});
}

SelectedWeights MultiHeadImpl::weights(const at::Tensor& query, const at::Tensor& key,
                                       const Attention& attention, const Selection& selection) {
  const at::NoGradGuard no_grad;
  return cached_weights(query, project(key, key), attention, selection);
}

SelectedWeights MultiHeadImpl::cached_weights(const at::Tensor& query, const HeadsCache& cache,
                                              const Attention& attention,
                                              const Selection& selection) {
  return fovea::weights(
      project_query(query), cache.key, {.score = attention.score, .structure = attention.structure},
      selection, {.key_lengths = attention.key_lengths, .query_offset = attention.query_offset});
}

}  // namespace fovea::nn
