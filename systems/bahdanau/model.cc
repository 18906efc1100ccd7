#include "systems/bahdanau/model.h"

#include <ATen/ATen.h>

#include <cmath>

#include "translate/embedding.h"

namespace fovea::systems {

using translate::AttentionMaps;
using translate::Batch;

BahdanauModel::BahdanauModel(const BahdanauConfig& config,
                             const translate::Vocabularies& vocabularies)
    : config_(config) {
  using torch::nn::Linear;
  const int64_t d = config.width, e = config.embedding, a = config.alignment;
  source_ =
      register_module("source_embedding", translate::token_embedding(vocabularies.source, e, 0.1));
  target_ =
      register_module("target_embedding", translate::token_embedding(vocabularies.target, e, 0.1));
  encoder_ = register_module(
      "encoder",
      nn::Recurrent(nn::RecurrentOptions{
          .input = e, .width = d, .layers = config.encoder_layers, .dropout = config.dropout}));
  first_state_ = register_module("first_state", Linear(d, d));
  query_ = register_module("query", Linear(d, a));
  key_ = register_module("key", Linear(torch::nn::LinearOptions(2 * d, a).bias(false)));
  score_ = register_parameter("score",
                              at::empty({a}).uniform_(-1, 1) / std::sqrt(static_cast<double>(a)));
  cell_ = register_module("cell", torch::nn::GRUCell(e + 2 * d, d));
  maxout_ = register_module("maxout", Linear(d + e + 2 * d, 2 * d));
  output_ = register_module("output", Linear(d, vocabularies.target));
}

BahdanauModel::Decoder BahdanauModel::encode(const Batch& batch) {
  const at::Tensor x = at::dropout(source_(batch.source), config_.dropout, is_training());
  const nn::Encoded encoded = encoder_->forward(x, batch.source_lengths);
  return {{encoded.states, key_(encoded.states), batch.source_lengths},
          {at::tanh(first_state_(encoded.backward))}};
}

at::Tensor BahdanauModel::output(const at::Tensor& state, const at::Tensor& word,
                                 const at::Tensor& context) {
  const at::Tensor pieces = maxout_(at::cat({state, word, context}, -1));
  const at::Tensor larger = pieces.unflatten(-1, {config_.width, 2}).amax(-1);
  return output_(at::dropout(larger, config_.dropout, is_training()));
}

// Row t is scored with s_{t-1} and belongs to the word y_t, which it helps to choose.
at::Tensor BahdanauModel::decode(Decoder& decoder, const at::Tensor& words,
                                 std::vector<at::Tensor>* rows) {
  const Choices choices{.score = Additive{score_}, .normaliser = config_.normaliser};
  const at::Tensor embedded = at::dropout(target_(words), config_.dropout, is_training());
  at::Tensor& state = decoder.states[0];
  std::vector<at::Tensor> states, contexts;
  for (int64_t t = 0; t < words.size(1); ++t) {
    const at::Tensor query = query_(state);
    if (rows) rows->push_back(decoder.memory.weights(query, choices));
    contexts.push_back(decoder.memory.context(query, choices));
    state = cell_(at::cat({embedded.select(1, t), contexts.back()}, -1), state);
    states.push_back(state);
  }
  return output(at::stack(states, 1), embedded, at::stack(contexts, 1));
}

std::optional<translate::DecodingSteps> BahdanauModel::steps(const Batch& batch) {
  Decoder decoder = encode(batch);
  const Choices choices{.score = Additive{score_}, .normaliser = config_.normaliser},
      scores{.score = Additive{score_}, .normaliser = Unnormalised{}};
  const at::Tensor embedded = target_(batch.target_in);
  at::Tensor& state = decoder.states[0];
  std::vector<at::Tensor> scored, rows, contexts, states;
  for (int64_t t = 0; t < embedded.size(1); ++t) {
    const at::Tensor query = query_(state);
    scored.push_back(decoder.memory.weights(query, scores));
    rows.push_back(decoder.memory.weights(query, choices));
    contexts.push_back(decoder.memory.context(query, choices));
    state = cell_(at::cat({embedded.select(1, t), contexts.back()}, -1), state);
    states.push_back(state);
  }
  return translate::DecodingSteps{
      at::cat(scored),   at::cat(rows),   decoder.memory.states[0],
      at::cat(contexts), at::cat(states), output(at::cat(states), embedded[0], at::cat(contexts))};
}

std::vector<AttentionMaps> BahdanauModel::maps(const Batch& batch) {
  return {{AttentionMaps::Kind::kCross, "Alignment: output on source", "additive",
           config_.normaliser_name, "source", "1", alignment(batch).unsqueeze(1)}};
}

}  // namespace fovea::systems
