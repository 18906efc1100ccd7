#include "systems/show_attend_tell/model.h"

#include <torch/torch.h>

#include <cmath>

#include "data/formats/vocabulary.h"
#include "nn/products/product.h"

namespace fovea::systems::show_attend_tell {
namespace {

using torch::nn::Linear;
using torch::nn::LinearOptions;

Linear without_bias(int64_t from, int64_t to) {
  return Linear(LinearOptions(from, to).bias(false));
}

}  // namespace

Model::Model(const Shape& shape) : shape_(shape) {
  const int64_t a = shape.regions.width(), n = shape.width, e = shape.embedding;
  encoder_ = register_module("encoder", Encoder(shape.regions));
  words_ = register_module(
      "words",
      torch::nn::Embedding(torch::nn::EmbeddingOptions(shape.words, e).padding_idx(data::kPad)));
  start_hidden_ = register_module("start_hidden", Linear(a, n));
  start_cell_ = register_module("start_cell", Linear(a, n));
  if (attends(shape.looks)) {
    key_ = register_module("key", without_bias(a, shape.attention));
    query_ = register_module("query", Linear(n, shape.attention));
    score_ = register_parameter("score", torch::empty({shape.attention}).uniform_(-1, 1) /
                                             std::sqrt(static_cast<double>(shape.attention)));
  }
  gate_ = register_module("gate", Linear(n, 1));
  of_word_ = register_module("lstm_word", Linear(e, 4 * n));
  of_context_ = register_module("lstm_context", without_bias(a, 4 * n));
  of_hidden_ = register_module("lstm_hidden", without_bias(n, 4 * n));
  out_hidden_ = register_module("out_hidden", Linear(n, e));
  out_context_ = register_module("out_context", without_bias(a, e));
  out_ = register_module("out", Linear(e, shape.words));
  baseline = register_buffer("baseline", torch::zeros({1}));
  const torch::NoGradGuard no_grad;
  words_->weight.normal_(0, 0.1);
  words_->weight[data::kPad].zero_();
  of_word_->bias.slice(0, n, 2 * n).fill_(1);  // the forget gate begins open
}

torch::Tensor Model::dropped(const torch::Tensor& x) const {
  return torch::dropout(x, shape_.dropout, is_training());
}

Seen Model::see(const torch::Tensor& pictures) {
  const torch::Tensor a = encoder_(pictures);
  if (!attends(shape_.looks)) {
    const torch::Tensor mean = a.mean(1);
    return {a, {}, shape_.looks == Looks::kNone ? mean : torch::zeros_like(mean)};
  }
  const torch::Tensor one_of = torch::eye(a.size(1), a.options()).expand({a.size(0), -1, -1});
  return {a, nn::projected(a, key_).unsqueeze(1), torch::cat({a, one_of}, 2).unsqueeze(1)};
}

State Model::start(const Seen& seen) {
  const torch::Tensor mean = seen.regions.mean(1);
  return {dropped(torch::tanh(start_hidden_(mean))), torch::tanh(start_cell_(mean))};
}

// What is asked of h at every step, in one product: the query, the gate's score, the LSTM's gates.
torch::Tensor Model::from_hidden() const {
  if (!attends(shape_.looks)) return torch::cat({gate_->weight, of_hidden_->weight});
  return torch::cat({gate_->weight, of_hidden_->weight, query_->weight});
}

Model::Look Model::look(const Seen& seen, const torch::Tensor& hidden,
                        const torch::Tensor& of_hidden) {
  const int64_t n = shape_.width, width = shape_.regions.width();
  const torch::Tensor all = nn::projected(hidden, of_hidden);
  // Split at once: the gradient of a slice would fill an array of the whole size.
  const auto parts = all.split_with_sizes({1, 4 * n, all.size(1) - 1 - 4 * n}, 1);
  Look out;
  out.gate = torch::sigmoid(parts[0] + gate_->bias);
  out.gates_of_state = parts[1];
  if (!attends(shape_.looks)) {
    out.context = seen.values;
    return out;
  }
  const torch::Tensor query = (parts[2] + query_->bias).unsqueeze(1).unsqueeze(1);
  const Choices soft{.score = Additive{score_}};
  if (shape_.looks == Looks::kHard && !is_training()) {
    const Choices hard{.score = Additive{score_}, .normaliser = Hard{}};
    out.context = attend(query, seen.keys, seen.regions.unsqueeze(1), hard).flatten(1);
    out.weights = fovea::weights(query, seen.keys, soft).weights.flatten(1);
    return out;
  }
  const auto read = attend(query, seen.keys, seen.values, soft)
                        .flatten(1)
                        .split_with_sizes({width, shape_.regions.count}, 1);
  out.context = read[0];
  out.weights = read[1];
  return out;
}

State Model::advance(const torch::Tensor& of_word, const Look& look, const torch::Tensor& context,
                     const torch::Tensor& cell) {
  const auto gates = (of_word + look.gates_of_state + nn::projected(context, of_context_))
                         .chunk(4, 1);  // i, f, g, o
  const torch::Tensor c = torch::addcmul(torch::sigmoid(gates[1]) * cell, torch::sigmoid(gates[0]),
                                         torch::tanh(gates[2]));
  return {torch::sigmoid(gates[3]) * torch::tanh(c), c};
}

torch::Tensor Model::out(const torch::Tensor& embedded, const torch::Tensor& hidden,
                         const torch::Tensor& context) {
  return nn::projected(
      dropped(embedded + nn::projected(hidden, out_hidden_) + nn::projected(context, out_context_)),
      out_);
}

Told Model::tell(const Seen& seen, const torch::Tensor& words, const torch::Tensor& real) {
  const int64_t items = words.size(0), longest = words.size(1);
  const torch::Tensor embedded = dropped(words_(words));
  const std::vector<torch::Tensor> of_word = nn::projected(embedded, of_word_).unbind(1);
  const torch::Tensor of_hidden = from_hidden();
  const bool draws = shape_.looks == Looks::kHard && is_training();
  Told out;
  // With probability 1/2 a picture is looked at softly after all, for its whole caption.
  if (draws) out.drawn = torch::rand({items}, embedded.options()) < 0.5;
  State state = start(seen);
  std::vector<torch::Tensor> hiddens, contexts, weights, chosen;
  for (int64_t t = 0; t < longest; ++t) {
    const Look look = this->look(seen, state.hidden, of_hidden);
    torch::Tensor context = look.context;
    if (draws) {
      const torch::Tensor which = torch::multinomial(look.weights.detach(), 1);  // [items, 1]
      const torch::Tensor at =
          seen.regions.gather(1, which.unsqueeze(2).expand({-1, -1, seen.regions.size(2)}));
      context = torch::where(out.drawn.unsqueeze(1), at.squeeze(1), context);
      chosen.push_back(look.weights.gather(1, which).clamp_min(1e-10).log());
    }
    context = look.gate * context;
    state = advance(of_word[static_cast<size_t>(t)], look, context, state.cell);
    hiddens.push_back(state.hidden);
    contexts.push_back(context);
    if (look.weights.defined()) weights.push_back(look.weights);
  }
  const auto of_real = [&](const torch::Tensor& x) { return x.index({real}); };
  out.logits = this->out(of_real(embedded), of_real(torch::stack(hiddens, 1)),
                         of_real(torch::stack(contexts, 1)));
  if (!weights.empty()) out.weights = torch::stack(weights, 1) * real.unsqueeze(2);
  if (draws) out.chosen = torch::cat(chosen, 1) * real;
  return out;
}

Model::Step Model::step(const Seen& seen, State& state, const torch::Tensor& words) {
  const torch::Tensor embedded = words_(words);
  const Look look = this->look(seen, state.hidden, from_hidden());
  const torch::Tensor context = look.gate * look.context;
  state = advance(nn::projected(embedded, of_word_), look, context, state.cell);
  return {out(embedded, state.hidden, context), look.weights, look.gate.squeeze(1)};
}

namespace {

class Speaker : public nn::StepModel {
 public:
  Speaker(Model& model, const torch::Tensor& pictures)
      : model_(model), seen_(model.see(pictures)), state_(model.start(seen_)) {}

  void select(const at::Tensor& rows) override {
    const torch::Tensor chosen = rows.to(seen_.regions.device());
    for (torch::Tensor* part :
         {&seen_.regions, &seen_.keys, &seen_.values, &state_.hidden, &state_.cell})
      if (part->defined()) *part = part->index_select(0, chosen);
  }
  nn::StepOutput step(const at::Tensor& tokens) override {
    Model::Step step = model_.step(seen_, state_, tokens.to(seen_.regions.device()));
    return {step.logits, step.weights};
  }

 private:
  Model& model_;
  Seen seen_;
  State state_;
};

}  // namespace

std::unique_ptr<nn::StepModel> speak(Model& model, const torch::Tensor& pictures) {
  return std::make_unique<Speaker>(model, pictures);
}

}  // namespace fovea::systems::show_attend_tell
