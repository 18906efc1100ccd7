#include "systems/seq2seq/model.h"

#include <ATen/ATen.h>

#include "translate/embedding.h"
#include "translate/reverse.h"

namespace fovea::systems {

using translate::Batch;

Seq2SeqModel::Seq2SeqModel(const Seq2SeqConfig& config, const translate::Vocabularies& vocabularies)
    : config_(config) {
  source_ = register_module("source_embedding",
                            translate::token_embedding(vocabularies.source, config.embedding, 0.1));
  target_ = register_module("target_embedding",
                            translate::token_embedding(vocabularies.target, config.embedding, 0.1));
  encoder_ = register_module(
      "encoder", nn::Recurrent(nn::RecurrentOptions{
                     .input = config.embedding, .width = config.width, .bidirectional = false}));
  decoder_ = register_module(
      "decoder",
      torch::nn::GRU(torch::nn::GRUOptions(config.embedding, config.width).batch_first(true)));
  output_ = register_module("output", torch::nn::Linear(config.width, vocabularies.target));
}

at::Tensor Seq2SeqModel::encode(const Batch& batch) {
  const at::Tensor tokens =
      config_.reverse ? translate::reversed(batch.source, batch.source_lengths) : batch.source;
  return encoder_
      ->forward(at::dropout(source_(tokens), config_.dropout, is_training()), batch.source_lengths)
      .forward;
}

at::Tensor Seq2SeqModel::embed_target(const at::Tensor& tokens) {
  return at::dropout(target_(tokens), config_.dropout, is_training());
}

at::Tensor Seq2SeqModel::logits(const Batch& batch) {
  const at::Tensor states =
      std::get<0>(decoder_->forward(embed_target(batch.target_in), encode(batch).unsqueeze(0)));
  return output_(at::dropout(states, config_.dropout, is_training()));
}

class Seq2SeqModel::Steps : public nn::StepModel {
 public:
  Steps(Seq2SeqModel& model, const Batch& sources)
      : model_(model), state_(model.encode(sources).unsqueeze(0)) {}
  void select(const at::Tensor& rows) override {
    state_ = state_.index_select(1, rows.to(state_.device())).contiguous();
  }
  nn::StepOutput step(const at::Tensor& tokens) override {
    at::Tensor states;
    std::tie(states, state_) = model_.decoder_->forward(
        model_.embed_target(tokens.to(state_.device()).unsqueeze(1)), state_);
    return {model_.output_(states.squeeze(1)), {}};
  }

 private:
  Seq2SeqModel& model_;
  at::Tensor state_;  // [1, B, width]
};

std::unique_ptr<nn::StepModel> Seq2SeqModel::start(const Batch& sources, translate::Want) {
  return std::make_unique<Steps>(*this, sources);
}

}  // namespace fovea::systems
