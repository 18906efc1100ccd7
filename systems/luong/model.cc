#include "systems/luong/model.h"

#include <ATen/ATen.h>

#include <cmath>

#include "translate/embedding.h"
#include "translate/reverse.h"

namespace fovea::systems {
namespace {

using torch::nn::Linear;
using torch::nn::LinearOptions;

at::Tensor heads_of_one(const at::Tensor& x) {
  return x.unsqueeze(1);
}  // [B, S, E] -> [B, 1, S, E]

const char* name_of(LuongScore score) {
  switch (score) {
    case LuongScore::kDot:
      return "dot";
    case LuongScore::kGeneral:
      return "bilinear (general)";
    case LuongScore::kConcat:
      return "additive (concat)";
    case LuongScore::kLocation:
      break;
  }
  return "location";
}

}  // namespace

using translate::AttentionMaps;
using translate::Batch;
using translate::Want;

LuongModel::LuongModel(const LuongConfig& config, const translate::Vocabularies& vocabularies)
    : config_(config) {
  const int64_t d = config.width, e = config.embedding, source = config.source_width,
                directions = config.bidirectional ? 2 : 1;
  if (source % directions != 0)
    throw InvalidArgument("width: " + std::to_string(source) +
                          " of the source, expected an even number for two directions");
  if (config.score == LuongScore::kDot && source != d)
    throw InvalidArgument("source_width: " + std::to_string(source) + ", expected " +
                          std::to_string(d) +
                          ", the decoder's width: a dot product takes two vectors of one width");
  source_ =
      register_module("source_embedding", translate::token_embedding(vocabularies.source, e, 0.1));
  target_ =
      register_module("target_embedding", translate::token_embedding(vocabularies.target, e, 0.1));
  encoder_ = register_module(
      "encoder", nn::Recurrent(nn::RecurrentOptions{.cell = nn::Cell::kLstm,
                                                    .input = e,
                                                    .width = source / directions,
                                                    .layers = config.layers,
                                                    .bidirectional = config.bidirectional,
                                                    .dropout = config.dropout}));
  cells_ = register_module("cells", torch::nn::ModuleList());
  for (int64_t l = 0; l < config.layers; ++l)
    cells_->push_back(
        torch::nn::LSTMCell(l > 0 ? d : e + (config.input_feeding ? joined_width() : 0), d));
  if (source != d) {
    first_hidden_ = register_module("first_hidden", Linear(source, d));
    first_cell_ = register_module("first_cell", Linear(source, d));
  }
  switch (config.score) {
    case LuongScore::kDot:
      break;
    case LuongScore::kGeneral:
      general_ = register_parameter("general", at::eye(d, source) + at::randn({d, source}) * 0.01);
      break;
    case LuongScore::kConcat:
      concat_query_ = register_module("concat_query", Linear(d, config.attention));
      concat_key_ = register_module("concat_key",
                                    Linear(LinearOptions(source, config.attention).bias(false)));
      concat_ = register_parameter("concat", at::empty({config.attention}).uniform_(-1, 1) /
                                                 std::sqrt(static_cast<double>(config.attention)));
      break;
    case LuongScore::kLocation:
      location_ = register_module("location", Linear(d, config.longest_source));
      break;
  }
  if (config.window == LuongWindow::kPredictive) {
    position_ = register_module("position", Linear(LinearOptions(d, d).bias(false)));
    position_score_ = register_module("position_score", Linear(LinearOptions(d, 1).bias(false)));
  }
  if (config.join == LuongJoin::kTanh)
    combine_ = register_module("combine", Linear(LinearOptions(source + d, d).bias(false)));
  output_ = register_module("output", Linear(joined_width(), vocabularies.target));
}

int64_t LuongModel::joined_width() const {
  return config_.join == LuongJoin::kTanh ? config_.width : config_.source_width + config_.width;
}

at::Tensor LuongModel::joined(const at::Tensor& context, const at::Tensor& state) {
  const at::Tensor both = at::cat({context, state}, -1);
  return combine_ ? at::tanh(combine_(both)) : both;
}

at::Tensor LuongModel::embed_target(const at::Tensor& tokens) {
  return at::dropout(target_(tokens), config_.dropout, is_training());
}

LuongModel::Memory LuongModel::encode(const Batch& batch, Decoder* decoder) {
  const int64_t n = batch.source.size(0);
  if (config_.score == LuongScore::kLocation && batch.source.size(1) > config_.longest_source) {
    throw InvalidArgument("source: " + std::to_string(batch.source.size(1)) +
                          " tokens, expected at most " + std::to_string(config_.longest_source) +
                          " (longest_source of the location score)");
  }
  Memory memory;
  memory.lengths = batch.source_lengths;
  if (config_.reverse)
    memory.shown_at = translate::reversed_positions(batch.source, batch.source_lengths);
  const at::Tensor tokens =
      config_.reverse ? batch.source.gather(1, memory.shown_at) : batch.source;
  const nn::Encoded encoded = encoder_->forward(
      at::dropout(source_(tokens), config_.dropout, is_training()), batch.source_lengths);
  memory.states = encoded.states;
  memory.keys = concat_key_ ? concat_key_(encoded.states) : encoded.states;
  // The last states of both directions, side by side, are the first state of the decoder, layer by
  // layer.
  const auto by_layer = [&](const at::Tensor& last) {
    return last.unflatten(0, {config_.layers, -1})
        .permute({0, 2, 1, 3})
        .reshape({config_.layers, n, config_.source_width});
  };
  const auto first = [&](torch::nn::Linear& bridge, const at::Tensor& last) {
    return (bridge ? bridge(by_layer(last)) : by_layer(last)).unbind(0);
  };
  decoder->hidden = first(first_hidden_, encoded.hidden);
  decoder->cells = first(first_cell_, encoded.cells);
  decoder->fed = at::zeros({n, joined_width()}, encoded.states.options());
  return memory;
}

at::Tensor LuongModel::advance(const at::Tensor& word, Decoder& decoder) {
  at::Tensor x = config_.input_feeding ? at::cat({word, decoder.fed}, -1) : word;
  for (size_t l = 0; l < decoder.hidden.size(); ++l) {
    auto& cell = *cells_->at<torch::nn::LSTMCellImpl>(l).as<torch::nn::LSTMCellImpl>();
    std::tie(decoder.hidden[l], decoder.cells[l]) =
        cell.forward(x, std::make_tuple(decoder.hidden[l], decoder.cells[l]));
    x = decoder.hidden[l];
    if (l + 1 < decoder.hidden.size()) x = at::dropout(x, config_.dropout, is_training());
  }
  return x;
}

at::Tensor LuongModel::all_states(at::Tensor x, const Decoder& decoder) {
  for (size_t l = 0; l < decoder.hidden.size(); ++l) {
    const auto& cell = *cells_->at<torch::nn::LSTMCellImpl>(l).as<torch::nn::LSTMCellImpl>();
    x = std::get<0>(at::lstm(
        x,
        {decoder.hidden[l].unsqueeze(0).contiguous(), decoder.cells[l].unsqueeze(0).contiguous()},
        {cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh}, /*has_biases=*/true,
        /*num_layers=*/1,
        /*dropout=*/0.0, is_training(), /*bidirectional=*/false, /*batch_first=*/true));
    if (l + 1 < decoder.hidden.size()) x = at::dropout(x, config_.dropout, is_training());
  }
  return x;
}

LuongModel::Look LuongModel::look(const Memory& memory, const at::Tensor& states, int64_t t) {
  const int64_t keys = memory.states.size(1);
  Look out{
      .query = states.unsqueeze(1), .keys = heads_of_one(memory.keys), .choices = {}, .factor = {}};
  switch (config_.score) {
    case LuongScore::kDot:
      out.choices.score = Dot{1.0};
      break;
    case LuongScore::kGeneral:  // s' W h is a dot product of W' s, projected once a step, with h
      out.query = at::matmul(states, general_).unsqueeze(1);
      out.choices.score = Dot{1.0};
      break;
    case LuongScore::kConcat:
      out.query = concat_query_(states).unsqueeze(1);
      out.choices.score = Additive{concat_};
      break;
    case LuongScore::kLocation:
      out.query = location_(states).slice(2, 0, keys).unsqueeze(1);
      out.choices.score = Location{};
      break;
  }
  if (config_.window == LuongWindow::kGlobal) return out;
  const at::Tensor state = states.squeeze(1);
  const at::Tensor place = at::arange(keys, state.options()).unsqueeze(0);  // [1, S]
  const double half = static_cast<double>(config_.half_window);
  at::Tensor centre = at::full({1, 1}, static_cast<double>(t), state.options());
  if (config_.window == LuongWindow::kPredictive) {
    centre = memory.lengths.to(state.options(), /*non_blocking=*/true).unsqueeze(1) *
             at::sigmoid(position_score_(at::tanh(position_(state))));
    // A Gaussian around the predicted position, not renormalised. It multiplies the weights, that
    // is, the values.
    out.factor = at::exp(-(place - centre).square() / (2 * (half / 2) * (half / 2)));
  }
  const at::Tensor near = (place - centre.detach()).abs().le(half).expand({state.size(0), keys});
  out.choices.structure = Keep{near.unsqueeze(1).unsqueeze(1)};
  return out;
}

at::Tensor LuongModel::mix(const Memory& memory, const at::Tensor& state, Decoder& decoder) {
  const Look l = look(memory, state.unsqueeze(1), decoder.t++);
  const at::Tensor values =
      l.factor.defined() ? memory.states * l.factor.unsqueeze(-1) : memory.states;
  const at::Tensor context =
      attend(l.query, l.keys, heads_of_one(values), l.choices, {.key_lengths = memory.lengths})
          .squeeze(1)
          .squeeze(1);
  decoder.fed = joined(context, state);
  return decoder.fed;
}

at::Tensor LuongModel::weights(const Memory& memory, const at::Tensor& state, int64_t t) {
  const Look l = look(memory, state.unsqueeze(1), t);
  at::Tensor row = fovea::weights(l.query, l.keys, l.choices, {}, {.key_lengths = memory.lengths})
                       .weights.squeeze(1)
                       .squeeze(1);
  if (l.factor.defined()) row = row * l.factor;
  return memory.shown_at.defined() ? row.gather(1, memory.shown_at) : row;
}

at::Tensor LuongModel::logits(const Batch& batch) {
  Decoder decoder;
  const Memory memory = encode(batch, &decoder);
  const at::Tensor words = embed_target(batch.target_in);
  if (at_once()) {
    const at::Tensor states = all_states(words, decoder);
    const Look l = look(memory, states, 0);
    const at::Tensor context = attend(l.query, l.keys, heads_of_one(memory.states), l.choices,
                                      {.key_lengths = memory.lengths})
                                   .squeeze(1);
    return output_(at::dropout(joined(context, states), config_.dropout, is_training()));
  }
  std::vector<at::Tensor> mixed;
  for (int64_t t = 0; t < words.size(1); ++t)
    mixed.push_back(mix(memory, advance(words.select(1, t), decoder), decoder));
  return output_(at::dropout(at::stack(mixed, 1), config_.dropout, is_training()));
}

class LuongModel::Steps : public nn::StepModel {
 public:
  Steps(LuongModel& model, const Batch& sources, Want want) : model_(model), want_(want) {
    memory_ = model.encode(sources, &decoder_);
  }

  void select(const at::Tensor& rows) override {
    const at::Tensor r = rows.to(memory_.states.device());
    const auto pick = [&](at::Tensor& t) {
      if (t.defined()) t = t.index_select(0, r);
    };
    for (at::Tensor* t : {&memory_.states, &memory_.keys, &memory_.shown_at, &decoder_.fed})
      pick(*t);
    memory_.lengths = memory_.lengths.index_select(0, rows);
    for (at::Tensor& t : decoder_.hidden) pick(t);
    for (at::Tensor& t : decoder_.cells) pick(t);
  }
  nn::StepOutput step(const at::Tensor& tokens) override {
    nn::StepOutput out;
    const at::Tensor state =
        model_.advance(model_.embed_target(tokens.to(memory_.states.device())), decoder_);
    if (want_ == Want::kAttention) out.attention = model_.weights(memory_, state, decoder_.t);
    out.logits = model_.output_(model_.mix(memory_, state, decoder_));
    return out;
  }

 private:
  LuongModel& model_;
  Want want_;
  Memory memory_;
  Decoder decoder_;
};

std::unique_ptr<nn::StepModel> LuongModel::start(const Batch& sources, Want want) {
  return std::make_unique<Steps>(*this, sources, want);
}

at::Tensor LuongModel::alignment(const Batch& batch) {
  Decoder decoder;
  const Memory memory = encode(batch, &decoder);
  const at::Tensor words = embed_target(batch.target_in);
  if (at_once()) {
    const Look l = look(memory, all_states(words, decoder), 0);
    const at::Tensor all =
        fovea::weights(l.query, l.keys, l.choices, {}, {.key_lengths = memory.lengths})
            .weights.squeeze(1);  // [B, T, S]
    return memory.shown_at.defined() ? all.gather(2, memory.shown_at.unsqueeze(1).expand_as(all))
                                     : all;
  }
  std::vector<at::Tensor> rows;
  for (int64_t t = 0; t < words.size(1); ++t) {
    const at::Tensor state = advance(words.select(1, t), decoder);
    rows.push_back(weights(memory, state, decoder.t));
    mix(memory, state, decoder);
  }
  return at::stack(rows, 1);
}

// Of a window that is placed by a factor on the weights, no sum of the states in their shares.
std::optional<translate::DecodingSteps> LuongModel::steps(const Batch& batch) {
  if (config_.window == LuongWindow::kPredictive) return std::nullopt;
  Decoder decoder;
  const Memory memory = encode(batch, &decoder);
  const at::Tensor words = embed_target(batch.target_in);
  const auto in_order = [&](const at::Tensor& row) {
    return memory.shown_at.defined() ? row.gather(1, memory.shown_at) : row;
  };
  std::vector<at::Tensor> scores, rows, contexts, states, logits;
  for (int64_t t = 0; t < words.size(1); ++t) {
    const at::Tensor state = advance(words.select(1, t), decoder);
    Look l = look(memory, state.unsqueeze(1), decoder.t);
    rows.push_back(weights(memory, state, decoder.t));
    contexts.push_back(attend(l.query, l.keys, heads_of_one(memory.states), l.choices,
                              {.key_lengths = memory.lengths})
                           .squeeze(1)
                           .squeeze(1));
    l.choices.normaliser = Unnormalised{};
    scores.push_back(
        in_order(fovea::weights(l.query, l.keys, l.choices, {}, {.key_lengths = memory.lengths})
                     .weights.squeeze(1)
                     .squeeze(1)));
    logits.push_back(output_(mix(memory, state, decoder)));
    states.push_back(state);
  }
  const at::Tensor source =
      memory.shown_at.defined()
          ? memory.states.gather(1, memory.shown_at.unsqueeze(-1).expand_as(memory.states))
          : memory.states;
  return translate::DecodingSteps{at::cat(scores),   at::cat(rows),   source[0],
                                  at::cat(contexts), at::cat(states), at::cat(logits)};
}

std::vector<AttentionMaps> LuongModel::maps(const Batch& batch) {
  const std::string structure = config_.window == LuongWindow::kGlobal
                                    ? "source"
                                    : "window of ±" + std::to_string(config_.half_window);
  return {{AttentionMaps::Kind::kCross, "Alignment: output on source", name_of(config_.score),
           "softmax", structure, "1", alignment(batch).unsqueeze(1)}};
}

}  // namespace fovea::systems
