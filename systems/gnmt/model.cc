#include "systems/gnmt/model.h"

#include <ATen/ATen.h>

#include <cmath>

#include "nn/forget_gate.h"
#include "translate/embedding.h"

namespace fovea::systems {

using translate::Batch;

namespace {

// Layers count from 0: the third is the first one whose input is added to its output.
at::Tensor with_residual(size_t layer, const at::Tensor& read, const at::Tensor& written) {
  return layer >= 2 ? read + written : written;
}

}  // namespace

GnmtModel::GnmtModel(const GnmtConfig& config, const translate::Vocabularies& vocabularies)
    : config_(config) {
  const int64_t d = config.width, e = config.embedding;
  source_ =
      register_module("source_embedding", translate::token_embedding(vocabularies.source, e, 0.1));
  target_ =
      register_module("target_embedding", translate::token_embedding(vocabularies.target, e, 0.1));
  for (int64_t layer = 0; layer < config.layers; ++layer)
    encoder_.push_back(
        register_module("encoder" + std::to_string(layer + 1),
                        nn::Recurrent(nn::RecurrentOptions{.cell = nn::Cell::kLstm,
                                                           .input = layer == 0   ? e
                                                                    : layer == 1 ? 2 * d
                                                                                 : d,
                                                           .width = d,
                                                           .bidirectional = layer == 0})));
  query_ = register_module("query", torch::nn::Linear(d, d));
  key_ = register_module("key", torch::nn::Linear(torch::nn::LinearOptions(d, d).bias(false)));
  score_ = register_parameter("score",
                              at::empty({d}).uniform_(-1, 1) / std::sqrt(static_cast<double>(d)));
  bottom_ = register_module("decoder1", torch::nn::LSTMCell(e + d, d));
  nn::open_forget_gate(*bottom_, d);
  for (int64_t layer = 1; layer < config.layers; ++layer) {
    above_.push_back(
        register_module("decoder" + std::to_string(layer + 1),
                        torch::nn::LSTM(torch::nn::LSTMOptions(2 * d, d).batch_first(true))));
    nn::open_forget_gate(*above_.back(), d);
  }
  output_ = register_module("output", torch::nn::Linear(d, vocabularies.target));
}

at::Tensor GnmtModel::dropped(const at::Tensor& x) const {
  return at::dropout(x, config_.dropout, is_training());
}

// A layer of the decoder starts from the last state of the encoder's layer at the same height. The
// lowest starts from the last state of the encoder's backward direction, at the first word.
GnmtModel::Decoder GnmtModel::encode(const Batch& batch) {
  Decoder out;
  at::Tensor x = source_(batch.source);
  for (size_t layer = 0; layer < encoder_.size(); ++layer) {
    const nn::Encoded encoded = encoder_[layer]->forward(dropped(x), batch.source_lengths);
    out.states.insert(out.states.end(), {encoded.hidden[-1], encoded.cells[-1]});
    x = with_residual(layer, x, encoded.states);
  }
  out.memory = {x, key_(x), batch.source_lengths};
  out.states.push_back(at::zeros_like(out.states.front()));
  return out;
}

at::Tensor GnmtModel::decode(Decoder& decoder, const at::Tensor& words,
                             std::vector<at::Tensor>* rows) {
  const Choices choices{.score = Additive{score_}};
  const at::Tensor embedded = dropped(target_(words));
  at::Tensor &state = decoder.states[0], &cell = decoder.states[1],
             &context = decoder.states.back();
  const auto look = [&] {
    const at::Tensor query = query_(state);
    if (rows) rows->push_back(decoder.memory.weights(query, choices));
    context = decoder.memory.context(query, choices);
  };
  std::vector<at::Tensor> states, contexts;
  for (int64_t t = 0; t < words.size(1); ++t) {
    if (config_.query == GnmtQuery::kPrevious) look();
    std::tie(state, cell) =
        bottom_->forward(at::cat({embedded.select(1, t), context}, -1), std::tuple(state, cell));
    if (config_.query == GnmtQuery::kNew) look();
    states.push_back(state);
    contexts.push_back(context);
  }
  at::Tensor x = at::stack(states, 1);
  const at::Tensor found = at::stack(contexts, 1);
  for (size_t layer = 1; layer <= above_.size(); ++layer) {
    at::Tensor &hidden = decoder.states[2 * layer], &cells = decoder.states[2 * layer + 1];
    const auto [written, last] = above_[layer - 1]->forward(
        at::cat({dropped(x), found}, -1), std::tuple(hidden.unsqueeze(0), cells.unsqueeze(0)));
    hidden = std::get<0>(last)[0];
    cells = std::get<1>(last)[0];
    x = with_residual(layer, x, written);
  }
  return output_(dropped(x));
}

std::vector<translate::AttentionMaps> GnmtModel::maps(const Batch& batch) {
  return {{translate::AttentionMaps::Kind::kCross, "Alignment: output on source", "additive",
           "softmax", "source", "1", alignment(batch).unsqueeze(1)}};
}

}  // namespace fovea::systems
