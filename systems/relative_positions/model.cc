#include "systems/relative_positions/model.h"

#include "fovea/nn/transformer.h"
#include "train/usage_error.h"

namespace fovea::systems::relative_positions {

SequenceModel::SequenceModel(const SequenceConfig& c) : config_(c) {
  if (c.width % c.heads != 0)
    throw UsageError("heads: " + std::to_string(c.heads) + ", expected a divisor of the width " +
                     std::to_string(c.width));
  embedding_ = register_module("embedding", torch::nn::Embedding(c.vocabulary, c.width));
  const bool tables = c.positions == Positions::kRelative || c.positions == Positions::kBoth;
  for (int64_t i = 0; i < c.layers; ++i) {
    layers_.push_back(
        register_module("layer" + std::to_string(i),
                        nn::EncoderLayer(nn::LayerOptions{.width = c.width,
                                                          .heads = c.heads,
                                                          .hidden = c.hidden,
                                                          .dropout = c.dropout,
                                                          .attention_dropout = 0,
                                                          .order = nn::NormOrder::kPre})));
    if (tables)
      tables_.push_back(register_module("tables" + std::to_string(i),
                                        nn::RelativeTables(nn::RelativeTablesOptions{
                                            .width = c.width / c.heads, .clip = c.clip})));
  }
  norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({c.width})));
  output_ = register_module("output", torch::nn::Linear(c.width, c.vocabulary));
}

torch::Tensor SequenceModel::embedded(const torch::Tensor& tokens, int64_t first) {
  torch::Tensor x = embedding_(tokens);
  if (config_.positions == Positions::kSinusoidal || config_.positions == Positions::kBoth)
    x = x + nn::position_encoding(first + tokens.size(1), config_.width)
                .narrow(0, first, tokens.size(1))
                .to(x.options());
  return torch::dropout(x, config_.dropout, is_training());
}

nn::Attention SequenceModel::attention(size_t layer) const {
  nn::Attention out{.structure = Causal{}};
  if (has_tables()) out.score = tables_[layer]->score();
  return out;
}

template <class Visit>
torch::Tensor SequenceModel::walked(const torch::Tensor& tokens, Visit visit) {
  torch::Tensor x = embedded(tokens, 0);
  for (size_t i = 0; i < layers_.size(); ++i) {
    visit(i, layers_[i]->attended(x));
    x = layers_[i](x, attention(i));
  }
  return x;
}

torch::Tensor SequenceModel::forward(const torch::Tensor& tokens) {
  return output_(norm_(walked(tokens, [](size_t, const torch::Tensor&) {})));
}

torch::Tensor SequenceModel::step(const torch::Tensor& tokens, SequenceCache& cache) {
  torch::Tensor x = embedded(tokens, cache.length());
  cache.layers.resize(layers_.size());
  for (size_t i = 0; i < layers_.size(); ++i)
    x = layers_[i]->step(x, cache.layers[i], attention(i));
  return output_(norm_(x));
}

torch::Tensor SequenceModel::weights(const torch::Tensor& tokens, const torch::Tensor& rows) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> out;
  walked(tokens, [&](size_t i, const torch::Tensor& x) {
    out.push_back(layers_[i]->self_attn->weights(x, x, attention(i), {.rows = rows}).weights);
  });
  return torch::stack(out);
}

torch::Tensor SequenceModel::offset_bias(const torch::Tensor& tokens) {
  const torch::NoGradGuard no_grad;
  const int64_t width = config_.width / config_.heads;
  std::vector<torch::Tensor> out;
  walked(tokens, [&](size_t i, const torch::Tensor& x) {
    const auto parameters = layers_[i]->self_attn->named_parameters();
    const torch::Tensor query =
        torch::linear(x, parameters["in_proj_weight"].narrow(0, 0, config_.width),
                      parameters["in_proj_bias"].narrow(0, 0, config_.width))
            .mean(at::IntArrayRef{0, 1})
            .view({config_.heads, width});
    out.push_back(query.matmul(tables_.at(i)->key.t()) / std::sqrt(static_cast<double>(width)));
  });
  return torch::stack(out);
}

GraphBatch GraphBatch::to(torch::Device device) const {
  return {colours.to(device),
          questions.to(device),
          {graph.row_offsets.to(device), graph.columns.to(device)},
          labels.to(device),
          asked.to(device)};
}

GraphModel::GraphModel(const GraphConfig& c) : config_(c) {
  if (c.width % c.heads != 0)
    throw UsageError("heads: " + std::to_string(c.heads) + ", expected a divisor of the width " +
                     std::to_string(c.width));
  colour_ = register_module("colour", torch::nn::Embedding(c.colours, c.width));
  question_ = register_module("question", torch::nn::Embedding(c.questions + 1, c.width));
  in_proj_ = register_module("in_proj", torch::nn::Linear(c.width, 3 * c.width));
  out_ = register_module("out", torch::nn::Linear(2 * c.width, c.colours));
  const int64_t rows = c.labelled ? c.labels : 1;
  key_table_ = register_parameter("key_table", 0.1 * torch::randn({rows, c.width / c.heads}));
  value_table_ = register_parameter("value_table", 0.1 * torch::randn({rows, c.width / c.heads}));
}

GraphModel::Parts GraphModel::parts(const GraphBatch& batch) {
  const torch::Tensor x = colour_(batch.colours) + question_(batch.questions);
  const auto all = in_proj_(x).unflatten(-1, {3, config_.heads, -1}).unbind(1);
  return {all[0], all[1], all[2]};
}

nn::EdgeLabels GraphModel::edges(const GraphBatch& batch) const {
  return {config_.labelled ? batch.labels : torch::zeros_like(batch.labels), key_table_,
          value_table_};
}

torch::Tensor GraphModel::forward(const GraphBatch& batch) {
  const Parts p = parts(batch);
  const torch::Tensor mixed =
      nn::attend_labelled(p.query, p.key, p.value, batch.graph, edges(batch)).flatten(1);
  const torch::Tensor own = colour_(batch.colours) + question_(batch.questions);
  return out_(torch::cat({own, mixed}, 1).index_select(0, batch.asked));
}

SelectedWeights GraphModel::weights(const GraphBatch& batch, int64_t most) {
  const Parts p = parts(batch);
  return nn::labelled_weights(p.query, p.key, batch.graph, edges(batch),
                              {.rows = batch.asked.to(torch::kInt), .top_k = most});
}

}  // namespace fovea::systems::relative_positions
