#include "systems/structured_attention/model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "fovea/attend.h"
#include "fovea/marginals.h"
#include "translate/embedding.h"

namespace fovea::systems::structured_attention {

using torch::nn::Linear;
using torch::nn::LinearOptions;

namespace {

// Scores [B, L, S] are their own query rows: marginals enter as they are, others are normalised here.
struct Weighted {
  at::Tensor scores;
  Choices choices;

  at::Tensor read(const at::Tensor& value, const at::Tensor& lengths) const {  // [B, L, width]
    return attend(scores.unsqueeze(1), no_keys(), value.unsqueeze(1), choices,
                  {.key_lengths = lengths})
        .squeeze(1);
  }
  at::Tensor weights(const at::Tensor& lengths) const {  // [B, L, S]
    return fovea::weights(scores.unsqueeze(1), no_keys(), choices, {}, {.key_lengths = lengths})
        .weights.squeeze(1);
  }

 private:
  at::Tensor no_keys() const { return scores.new_zeros({scores.size(0), 1, scores.size(2), 1}); }
};

Normaliser normaliser_of(Weighing weighing) {
  switch (weighing) {
    case Weighing::kSoftmax:
      return Softmax{};
    case Weighing::kSigmoid:
      return Sigmoid{};
    case Weighing::kNone:
      return Uniform{};
    case Weighing::kStructured:
      break;
  }
  return Unnormalised{};
}

const char* name_of(Weighing weighing, const char* structured) {
  switch (weighing) {
    case Weighing::kSoftmax:
      return "softmax";
    case Weighing::kSigmoid:
      return "sigmoid";
    case Weighing::kNone:
      return "uniform";
    case Weighing::kStructured:
      break;
  }
  return structured;
}

// The heads of each symbol, the root first: [B, n, 1 + n]. No symbol is its own head.
Weighted heads(const at::Tensor& arcs, const at::Tensor& lengths, Weighing weighing) {
  const bool trees = weighing == Weighing::kStructured;
  const at::Tensor of_arcs = trees ? tree_marginals(arcs, lengths.to(at::kLong)).arcs : arcs;
  const at::Tensor itself =
      at::eye(arcs.size(1), at::TensorOptions(arcs.device()).dtype(at::kBool));
  const at::Tensor others = of_arcs.transpose(1, 2).masked_fill(
      itself, trees ? 0.0 : -std::numeric_limits<double>::infinity());
  return {at::cat({of_arcs.diagonal(0, 1, 2).unsqueeze(2), others}, 2),
          {.score = Location{}, .normaliser = normaliser_of(weighing)}};
}

// The weight of each word of a sentence: [B, 1, n].
Weighted words(const at::Tensor& scores, const at::Tensor& pairwise, const at::Tensor& lengths,
               Weighing weighing) {
  at::Tensor row = scores;
  if (weighing == Weighing::kStructured)
    row = chain_marginals(at::stack({at::zeros_like(scores), scores}, 2), pairwise,
                          lengths.clamp_min(1).to(at::kLong))
              .states.select(2, 1);
  return {row.unsqueeze(1), {.score = Location{}, .normaliser = normaliser_of(weighing)}};
}

at::Tensor drawn(int64_t width) {
  return at::empty({width}).uniform_(-1, 1) / std::sqrt(static_cast<double>(width));
}

}  // namespace

// ---- formulas -----------------------------------------------------------------------------------

namespace {
constexpr int64_t kLongest = 1000;  // symbols: a million arcs with `width` numbers each
}

FormulaModel::FormulaModel(const FormulaConfig& config, const translate::Vocabularies& vocabularies)
    : config_(config) {
  const int64_t d = config.width, s = config.state, c = 2 * d;
  source_ =
      register_module("source_embedding", translate::token_embedding(vocabularies.source, d, 0.5));
  target_ =
      register_module("target_embedding", translate::token_embedding(vocabularies.target, d, 0.5));
  query_ = register_module("query", Linear(s, d));
  key_ = register_module("key", Linear(LinearOptions(c, d).bias(false)));
  cell_ = register_module("cell", torch::nn::LSTMCell(d + c, s));
  mixed_ = register_module("mixed", Linear(s + c, s));
  output_ = register_module("output", Linear(s, vocabularies.target));
  score_ = register_parameter("score", drawn(d));
  first_ = register_parameter("first_state", at::zeros({2, s}));
  if (config.weighing == Weighing::kNone) return;
  reader_ = register_module("reader", nn::Recurrent(nn::RecurrentOptions{
                                          .cell = nn::Cell::kLstm, .input = d, .width = d}));
  head_ = register_module("head", Linear(2 * d, d));
  dependant_ = register_module("dependant", Linear(LinearOptions(2 * d, d).bias(false)));
  arc_ = register_parameter("arc", drawn(d));
  root_ = register_parameter("root", at::randn({d}) * 0.5);
}

at::Tensor FormulaModel::arc_scores(const at::Tensor& x, const at::Tensor& lengths) {
  if (x.size(1) > kLongest)
    throw InvalidArgument(fmt::format(
        "source: {} symbols, expected at most {}: there is an arc for every two, and trees take "
        "time with the cube",
        x.size(1), kLongest));
  const at::Tensor h = reader_->forward(x, lengths).states;
  return at::tanh(head_(h).unsqueeze(2) + dependant_(h).unsqueeze(1)).matmul(arc_);
}

FormulaModel::Decoder FormulaModel::encode(const translate::Batch& batch) {
  const at::Tensor x = at::dropout(source_(batch.source), config_.dropout, is_training());
  at::Tensor c = at::zeros_like(x);
  if (config_.weighing != Weighing::kNone) {
    const at::Tensor root = root_.expand({x.size(0), 1, x.size(2)});
    c = heads(arc_scores(x, batch.source_lengths), batch.source_lengths, config_.weighing)
            .read(at::cat({root, x}, 1), batch.source_lengths + 1);
  }
  const at::Tensor states = at::cat({x, c}, 2);
  const auto first = first_.unsqueeze(1).expand({2, x.size(0), config_.state});
  return {{states, key_(states), batch.source_lengths},
          {first[0], first[1], at::zeros_like(states.select(1, 0))}};
}

at::Tensor FormulaModel::decode(Decoder& decoder, const at::Tensor& words,
                                std::vector<at::Tensor>* rows) {
  const Choices choices{.score = Additive{score_}};
  const at::Tensor embedded = at::dropout(target_(words), config_.dropout, is_training());
  at::Tensor &state = decoder.states[0], &cell = decoder.states[1], &context = decoder.states[2];
  std::vector<at::Tensor> mixed;
  for (int64_t t = 0; t < words.size(1); ++t) {
    std::tie(state, cell) =
        cell_->forward(at::cat({embedded.select(1, t), context}, 1), std::tuple(state, cell));
    const at::Tensor query = query_(state);
    if (rows) rows->push_back(decoder.memory.weights(query, choices));
    context = decoder.memory.context(query, choices);
    mixed.push_back(at::cat({state, context}, 1));
  }
  return output_(
      at::dropout(at::tanh(mixed_(at::stack(mixed, 1))), config_.dropout, is_training()));
}

std::vector<translate::AttentionMaps> FormulaModel::maps(const translate::Batch& batch) {
  using translate::AttentionMaps;
  std::vector<AttentionMaps> out = {{AttentionMaps::Kind::kCross, "Alignment: output on source",
                                     "additive", "softmax", "source", "1",
                                     alignment(batch).unsqueeze(1)}};
  if (config_.weighing == Weighing::kNone) return out;
  const at::Tensor& lengths = batch.source_lengths;
  const at::Tensor arcs = arc_scores(source_(batch.source), lengths);
  // The root stands on the diagonal again, as no symbol is its own head.
  const auto picture = [&](Weighing weighing, const char* title) {
    const at::Tensor rows = heads(arcs, lengths, weighing).weights(lengths + 1);
    const at::Tensor weights = rows.narrow(2, 1, arcs.size(1)) + rows.select(2, 0).diag_embed();
    out.push_back({AttentionMaps::Kind::kSource, title, "MLP of two symbols",
                   name_of(weighing, "marginals of trees"), "projective trees; diagonal: the root",
                   "1", weights.unsqueeze(1)});
  };
  picture(config_.weighing, "The heads of each symbol");
  if (config_.weighing == Weighing::kStructured)
    picture(Weighing::kSoftmax, "The same scores under softmax: no tree binds them");
  return out;
}

// ---- spans --------------------------------------------------------------------------------------

SpanModel::SpanModel(const SpanConfig& config) : config_(config) {
  embedding = register_module("embedding", text::Embedding(config.embedding));
  const int64_t d = config.embedding.width;
  key_ = register_module("key", Linear(d, config.hidden));
  theta_ = register_module("theta", Linear(config.hidden, 1));
  answer_ = register_module("output", Linear(d, config.classes));
  pairwise = register_parameter("pairwise", at::zeros({2, 2}));
}

namespace {

// Packed rows [total, width] as [B, n, width], zeros where a sentence has ended.
struct Padded {
  at::Tensor rows, real, lengths;

  Padded(const at::Tensor& packed, const at::Tensor& bounds) {
    lengths = bounds.diff();
    const int64_t longest = std::max<int64_t>(1, lengths.max().item<int64_t>());
    real = at::arange(longest, lengths.options()).unsqueeze(0) < lengths.unsqueeze(1);
    rows = packed.new_zeros({lengths.size(0), longest, packed.size(1)})
               .masked_scatter(real.unsqueeze(2), packed);
  }
};

}  // namespace

text::Answer SpanModel::answer(const text::Batch& batch, text::Want want) {
  const Padded x(embedding(batch.words), batch.bounds());
  const Weighted weighted = words(scores(x.rows), pairwise, x.lengths, config_.weighing);
  const at::Tensor read = weighted.read(x.rows, x.lengths).squeeze(1);
  text::Answer out{.logits = answer_(at::dropout(read, config_.dropout, is_training())),
                   .look = {}};
  if (want == text::Want::kLook)
    out.look = {.words = weights_by(config_.weighing, batch).unsqueeze(0),
                .sentences = {},
                .heads = {name_of(config_.weighing, "chain")},
                .score = "MLP wᵀtanh(W x + b)",
                .normaliser = name_of(config_.weighing, "marginals of chains"),
                .structure = "sentence",
                .scale = "1"};
  return out;
}

at::Tensor SpanModel::scores(const at::Tensor& rows) {
  return theta_(at::tanh(key_(rows))).squeeze(2);
}

at::Tensor SpanModel::weights_by(Weighing weighing, const text::Batch& batch) {
  const Padded x(embedding(batch.words), batch.bounds());
  return words(scores(x.rows), pairwise, x.lengths, weighing)
      .weights(x.lengths)
      .squeeze(1)
      .masked_select(x.real);
}

}  // namespace fovea::systems::structured_attention
