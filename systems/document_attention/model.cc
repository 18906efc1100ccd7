#include "systems/document_attention/model.h"

#include <ATen/ATen.h>

#include <cmath>

#include "data/formats/vocabulary.h"
#include "data/packed.h"
#include "text/recurrent.h"

namespace fovea::systems {

using torch::nn::Linear;
using torch::nn::LinearOptions;

DocumentAttentionModel::DocumentAttentionModel(const Config& config) : config_(config) {
  const int64_t d = config.width, a = config.aspect_width;
  embedding = register_module("embedding", text::Embedding(config.embedding));
  aspects_ =
      register_module("aspects", text::Embedding(text::EmbeddingOptions{
                                     .words = config.aspects, .width = a, .deviation = 0.3}));
  no_aspect_ = register_parameter("no_aspect", at::randn({a}) * 0.3);
  const int64_t input = config.embedding.width + (config.use == AspectUse::kAtae ? a : 0);
  encoder_ = register_module(
      "encoder", nn::Recurrent(nn::RecurrentOptions{
                     .cell = nn::Cell::kLstm, .input = input, .width = d, .bidirectional = false}));
  key_ = register_module("key", Linear(LinearOptions(d, d).bias(false)));
  query_ = register_module("query", Linear(LinearOptions(a, d).bias(false)));
  const int64_t e = config.score == AspectScore::kConcat ? 2 * d : d;
  score_ = register_parameter("score", at::randn({e}) / std::sqrt(static_cast<double>(e)));
  from_mixed_ = register_module("from_mixed", Linear(LinearOptions(d, d).bias(false)));
  from_last_ = register_module("from_last", Linear(LinearOptions(d, d).bias(false)));
  output_ = register_module("output", Linear(d, config.classes));
}

at::Tensor DocumentAttentionModel::aspect(const text::Batch& batch) {
  const at::Tensor asked =
      config_.use == AspectUse::kBlind ? at::zeros_like(batch.aspects) : batch.aspects;
  return aspects_(asked) + (asked == data::kPad).unsqueeze(1) * no_aspect_;
}

text::Answer DocumentAttentionModel::answer(const text::Batch& batch, text::Want want) {
  const at::Tensor bounds = batch.bounds(), v = aspect(batch);
  at::Tensor x = embedding(batch.words);
  if (config_.use == AspectUse::kAtae)
    x = at::cat({x, v.index_select(0, data::owners(bounds).to(x.device()))}, 1);  // [x_i; v]
  const text::Walked walked = text::walk(
      encoder_, x, bounds, config_.forgetting);  // the last state is that of the last real word
  at::Tensor key = key_(walked.states), query = query_(v);
  if (config_.score == AspectScore::kConcat) {  // tanh([a; b]) is tanh([a; 0] + [0; b])
    key = at::constant_pad_nd(key, {0, config_.width});
    query = at::constant_pad_nd(query, {config_.width, 0});
  }
  const Choices choices{.score = Additive{score_},
                        .normaliser = config_.normaliser,
                        .structure = Ragged{data::one_each(batch.items(), x.device()), bounds}};
  const at::Tensor mixed =
      attend(query.unsqueeze(1), key.unsqueeze(1), walked.states.unsqueeze(1), choices)
          .squeeze(1);  // r
  const at::Tensor last =
      is_training() ? walked.last * text::remembered(batch.items(), config_.last_forgetting, x)
                    : walked.last;
  const at::Tensor document = at::tanh(from_mixed_(mixed) + from_last_(last));  // h*
  text::Answer out;
  out.logits = output_(at::dropout(document, config_.dropout, is_training()));
  if (want == text::Want::kLook) {
    out.look = {
        .words = text::packed_weights(query.unsqueeze(1), key.unsqueeze(1), choices, bounds),
        .sentences = {},
        .heads = {"1"},
        .score = config_.score == AspectScore::kConcat ? "additive wᵀtanh([W h; V v])"
                                                       : "additive wᵀtanh(W h + V v)",
        .normaliser = config_.normaliser_name,
        .structure = "sentence",
        .scale = "1"};
  }
  return out;
}

}  // namespace fovea::systems
