#include "systems/bahdanau/model.h"

#include <ATen/ATen.h>

#include <cmath>

#include "translate/embedding.h"

namespace fovea::systems {

using translate::AttentionMaps;
using translate::Batch;
using translate::Want;

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

Choices BahdanauModel::choices() const {
  return {.score = Additive{score_}, .normaliser = config_.normaliser};
}

at::Tensor BahdanauModel::embed_target(const at::Tensor& tokens) {
  return at::dropout(target_(tokens), config_.dropout, is_training());
}

BahdanauModel::Memory BahdanauModel::encode(const Batch& batch, at::Tensor* first_state) {
  const at::Tensor x = at::dropout(source_(batch.source), config_.dropout, is_training());
  const nn::Encoded encoded = encoder_->forward(x, batch.source_lengths);
  *first_state = at::tanh(first_state_(encoded.backward));
  return {encoded.states, key_(encoded.states), batch.source_lengths};
}

at::Tensor BahdanauModel::context(const Memory& memory, const at::Tensor& state) {
  return attend(query(state), memory.keys.unsqueeze(1), memory.states.unsqueeze(1), choices(),
                {.key_lengths = memory.lengths})
      .squeeze(1)
      .squeeze(1);
}

at::Tensor BahdanauModel::weights(const Memory& memory, const at::Tensor& state) {
  return fovea::weights(query(state), memory.keys.unsqueeze(1), choices(), {},
                        {.key_lengths = memory.lengths})
      .weights.squeeze(1)
      .squeeze(1);
}

at::Tensor BahdanauModel::output(const at::Tensor& state, const at::Tensor& word,
                                 const at::Tensor& context) {
  const at::Tensor pieces = maxout_(at::cat({state, word, context}, -1));
  const at::Tensor larger = pieces.unflatten(-1, {config_.width, 2}).amax(-1);
  return output_(at::dropout(larger, config_.dropout, is_training()));
}

at::Tensor BahdanauModel::logits(const Batch& batch) {
  at::Tensor state;
  const Memory memory = encode(batch, &state);
  const at::Tensor words = embed_target(batch.target_in);
  std::vector<at::Tensor> states, contexts;
  for (int64_t t = 0; t < words.size(1); ++t) {
    contexts.push_back(context(memory, state));
    state = cell_(at::cat({words.select(1, t), contexts.back()}, -1), state);
    states.push_back(state);
  }
  return output(at::stack(states, 1), words, at::stack(contexts, 1));
}

class BahdanauModel::Steps : public nn::StepModel {
 public:
  Steps(BahdanauModel& model, const Batch& sources, Want want) : model_(model), want_(want) {
    memory_ = model.encode(sources, &state_);
  }

  void select(const at::Tensor& rows) override {
    const at::Tensor r = rows.to(state_.device());
    for (at::Tensor* t : {&state_, &memory_.states, &memory_.keys}) *t = t->index_select(0, r);
    memory_.lengths = memory_.lengths.index_select(0, rows);
  }
  nn::StepOutput step(const at::Tensor& tokens) override {
    nn::StepOutput out;
    const at::Tensor word = model_.embed_target(tokens.to(state_.device()));
    if (want_ == Want::kAttention) out.attention = model_.weights(memory_, state_);
    const at::Tensor context = model_.context(memory_, state_);
    state_ = model_.cell_(at::cat({word, context}, -1), state_);
    out.logits = model_.output(state_, word, context);
    return out;
  }

 private:
  BahdanauModel& model_;
  Want want_;
  at::Tensor state_;
  Memory memory_;
};

std::unique_ptr<nn::StepModel> BahdanauModel::start(const Batch& sources, Want want) {
  return std::make_unique<Steps>(*this, sources, want);
}

// Row t is scored with s_{t-1} and belongs to the word y_t it helps to choose.
at::Tensor BahdanauModel::alignment(const Batch& batch) {
  at::Tensor state;
  const Memory memory = encode(batch, &state);
  const at::Tensor words = embed_target(batch.target_in);
  std::vector<at::Tensor> rows;
  for (int64_t t = 0; t < words.size(1); ++t) {
    rows.push_back(weights(memory, state));
    state = cell_(at::cat({words.select(1, t), context(memory, state)}, -1), state);
  }
  return at::stack(rows, 1);
}

std::vector<AttentionMaps> BahdanauModel::maps(const Batch& batch) {
  return {{AttentionMaps::Kind::kCross, "Alignment: output on source", "additive",
           config_.normaliser_name, "source", "1", alignment(batch).unsqueeze(1)}};
}

}  // namespace fovea::systems
