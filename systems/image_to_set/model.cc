#include "systems/image_to_set/model.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nn/forget_gate.h"
#include "systems/image_to_set/losses.h"
#include "train/task.h"

namespace fovea::systems::image_to_set {
namespace {

constexpr int64_t kNoTarget = -100;  // libtorch's own mark
constexpr float kNever = -std::numeric_limits<float>::infinity();

torch::Tensor ones_and_zeros(const std::vector<LabelSet>& sets, int64_t labels,
                             const torch::TensorOptions& options) {
  torch::Tensor out = torch::zeros({static_cast<int64_t>(sets.size()), labels}, torch::kFloat32);
  auto at = out.accessor<float, 2>();
  for (size_t i = 0; i < sets.size(); ++i)
    for (const int64_t label : sets[i]) at[static_cast<int64_t>(i)][label] = 1;
  return out.to(options);
}

torch::Tensor sizes_of(const std::vector<LabelSet>& sets, torch::Device device) {
  std::vector<int64_t> out;
  for (const LabelSet& set : sets) out.push_back(static_cast<int64_t>(set.size()));
  return torch::tensor(out, torch::kInt64).to(device);
}

// [items, steps, labels + 1] of ones and zeros. The end is never an input, so its column has zeros.
torch::Tensor named_labels(const torch::Tensor& inputs, int64_t labels) {
  return torch::one_hot(inputs, labels + 2).slice(2, 0, labels + 1);
}

}  // namespace

SetPredictor::SetPredictor(const Shape& shape)
    : shape_(shape), predictor_(predictor_named(shape.predictor)) {
  const int64_t width = shape.width;
  cut_ = register_buffer("cut", torch::tensor({0.5f, 0.0f}));
  const bool predicts_size = !predictor_.steps() && shape.cardinality != "none";
  if (!predictor_.steps()) {
    if (shape.pool == "labels") {
      slots_ = register_parameter(
          "slots", torch::randn({shape.labels, width}) / std::sqrt(static_cast<double>(width)));
      cross_ = register_module(
          "cross", nn::MultiHead(nn::MultiHeadOptions{
                       .width = width, .heads = shape.heads, .dropout = shape.dropout}));
    }
    hidden_ = register_module("hidden", torch::nn::Linear(width, width));
    label_weight_ = register_parameter("label_weight", torch::randn({shape.labels, width}) /
                                                           std::sqrt(static_cast<double>(width)));
    label_bias_ = register_parameter("label_bias", torch::zeros({shape.labels}));
  }
  if (predicts_size) {
    sizes_hidden_ = register_module("sizes_hidden", torch::nn::Linear(width, width));
    sizes_ = register_module("sizes", torch::nn::Linear(width, shape.largest + 1));
    size_shares_ = register_buffer("size_shares", torch::zeros({shape.largest + 1}));
    if (!shape.size_shares.empty()) size_shares_.copy_(torch::tensor(shape.size_shares));
  }
  if (!predictor_.steps()) return;
  embedding_ = register_module("embedding", torch::nn::Embedding(shape.labels + 2, width));
  if (predictor_.body == Body::kTransformer) {
    const nn::LayerOptions layer{.width = width,
                                 .heads = shape.heads,
                                 .hidden = 2 * width,
                                 .dropout = shape.dropout,
                                 .attention_dropout = shape.dropout,
                                 .order = nn::NormOrder::kPre};
    decoder_ = register_module("decoder", nn::Decoder(layer, shape.layers, true));
  } else {
    first_state_ = register_module("first_state", torch::nn::Linear(width, width));
    lstm_ = register_module(
        "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(width, width).batch_first(true)));
    nn::open_forget_gate(*lstm_, width);
    cross_ = register_module("cross",
                             nn::MultiHead(nn::MultiHeadOptions{
                                 .width = width, .heads = shape.heads, .dropout = shape.dropout}));
    join_ = register_module("join", torch::nn::Linear(2 * width, width));
  }
  out_ = register_module("out", torch::nn::Linear(width, shape.labels + 1));
}

Rule SetPredictor::rule() const {
  const bool mass = predictor_.lesson == Lesson::kDistribution;
  if (shape_.cardinality == "none") return mass ? Rule::kMass : Rule::kThreshold;
  // Probabilities that add up to 1 say nothing about how many labels there are.
  return shape_.cardinality == "dirichlet" && !mass ? Rule::kJoint : Rule::kSize;
}

Cut SetPredictor::cut() const {
  const std::vector<float> kept = to_floats(cut_);
  return {.threshold = kept[0], .floor = kept[1]};
}

void SetPredictor::set_cut(const Cut& cut) {
  cut_.copy_(torch::tensor({static_cast<float>(cut.threshold), static_cast<float>(cut.floor)}));
}

// Every key has the same weight: a constant score.
torch::Tensor SetPredictor::mean_of(const Memory& memory) const {
  const torch::Tensor keys = memory.keys.unsqueeze(1);
  return attend(keys.narrow(2, 0, 1), keys, keys, {.score = Constant{}, .normaliser = Uniform{}},
                {.key_lengths = memory.lengths})
      .flatten(1);
}

torch::Tensor SetPredictor::label_logits(const Memory& memory) {
  if (!cross_) {
    const torch::Tensor seen =
        torch::dropout(torch::relu(hidden_(mean_of(memory))), shape_.dropout, is_training());
    return torch::addmm(label_bias_, seen, label_weight_.t());
  }
  const torch::Tensor asked = slots_.expand({memory.keys.size(0), -1, -1});
  const torch::Tensor seen = torch::relu(
      hidden_(cross_->forward(asked, memory.keys, memory.keys, {.key_lengths = memory.lengths})));
  return (torch::dropout(seen, shape_.dropout, is_training()) * label_weight_).sum(2) + label_bias_;
}

torch::Tensor SetPredictor::log_sizes(const Memory& memory) {
  const torch::Tensor said = sizes_(torch::relu(sizes_hidden_(mean_of(memory))));
  return shape_.cardinality == "dirichlet"
             ? dirichlet_sizes(torch::nn::functional::softplus(said), size_shares_)
             : said.log_softmax(1);
}

torch::Tensor SetPredictor::recurrent(const torch::Tensor& x, const Memory& memory) {
  const torch::Tensor first = torch::tanh(first_state_(mean_of(memory))).unsqueeze(0);
  return std::get<0>(lstm_(x, std::make_tuple(first, torch::zeros_like(first))));
}

torch::Tensor SetPredictor::states(const torch::Tensor& inputs, const Memory& memory) {
  const torch::Tensor x =
      torch::dropout(embedding_(inputs), shape_.dropout, is_training());  // [items, steps, width]
  const nn::Attention seen{.key_lengths = memory.lengths};
  if (decoder_) return decoder_->forward(x, memory.keys, {.structure = Causal{}}, seen);
  const torch::Tensor state = recurrent(x, memory);
  const torch::Tensor read = cross_(state, memory.keys, memory.keys, seen);
  return torch::dropout(torch::relu(join_(torch::cat({state, read}, 2))), shape_.dropout,
                        is_training());
}

torch::Tensor SetPredictor::next_logits(const torch::Tensor& inputs, const Memory& memory) {
  return out_(states(inputs, memory))
      .masked_fill(named_labels(inputs, shape_.labels).cumsum(1) > 0, kNever);
}

torch::Tensor SetPredictor::last_logits(const torch::Tensor& inputs, const Memory& memory) {
  return out_(states(inputs, memory).select(1, -1))
      .masked_fill(named_labels(inputs, shape_.labels).sum(1) > 0, kNever);
}

// The likeliest labels one after another, the end left out: [items, steps], `start` first.
torch::Tensor SetPredictor::own_steps(const Memory& memory, int64_t steps) {
  const torch::NoGradGuard guard;
  torch::Tensor inputs =
      torch::full({memory.keys.size(0), 1}, start(), memory.keys.options().dtype(torch::kInt64));
  while (inputs.size(1) < steps) {
    const torch::Tensor best =
        last_logits(inputs, memory).slice(1, 0, shape_.labels).argmax(1, /*keepdim=*/true);
    inputs = torch::cat({inputs, best}, 1);
  }
  return inputs;
}

torch::Tensor SetPredictor::step_loss(const Memory& memory, const std::vector<LabelSet>& sets) {
  const auto device = memory.keys.device();
  const torch::Tensor sizes = sizes_of(sets, device);
  const int64_t items = sizes.size(0), steps = sizes.max().item<int64_t>() + 1;
  if (predictor_.lesson == Lesson::kSet) {
    const torch::Tensor p = next_logits(own_steps(memory, steps), memory).softmax(2);
    const torch::Tensor target = ones_and_zeros(sets, shape_.labels, memory.keys.options());
    return (pooled_loss(p, target, sizes) + shape_.end_weight * end_loss(p, sizes)).mean();
  }
  torch::Tensor inputs = torch::full({items, steps}, start(), torch::kInt64),
                targets = torch::full({items, steps}, kNoTarget, torch::kInt64);
  auto in = inputs.accessor<int64_t, 2>();
  auto out = targets.accessor<int64_t, 2>();
  for (int64_t i = 0; i < items; ++i) {
    const LabelSet& set = sets[static_cast<size_t>(i)];
    for (size_t t = 0; t < set.size(); ++t) {
      in[i][static_cast<int64_t>(t) + 1] = set[t];
      out[i][static_cast<int64_t>(t)] = set[t];
    }
    out[i][static_cast<int64_t>(set.size())] = shape_.labels;  // the end
  }
  return torch::nn::functional::cross_entropy(
      next_logits(inputs.to(device), memory).flatten(0, 1), targets.to(device).flatten(),
      torch::nn::functional::CrossEntropyFuncOptions().ignore_index(kNoTarget));
}

torch::Tensor SetPredictor::loss(const Memory& memory, const std::vector<LabelSet>& sets) {
  if (predictor_.steps()) return step_loss(memory, sets);
  const torch::Tensor target = ones_and_zeros(sets, shape_.labels, memory.keys.options());
  const torch::Tensor logits = label_logits(memory);
  torch::Tensor out = predictor_.lesson == Lesson::kBinary ? binary_loss(logits, target)
                      : predictor_.lesson == Lesson::kIou  ? soft_iou_loss(logits, target)
                                                           : distribution_loss(logits, target);
  if (sizes_) {
    const torch::Tensor sizes = sizes_of(sets, memory.keys.device()).clamp_max(shape_.largest);
    out = out - shape_.size_weight * log_sizes(memory).gather(1, sizes.unsqueeze(1)).squeeze(1);
  }
  return out.mean();
}

std::vector<Scored> SetPredictor::scored(const Memory& memory) {
  const torch::Tensor logits = label_logits(memory);
  const torch::Tensor p =
      predictor_.lesson == Lesson::kDistribution ? logits.softmax(1) : logits.sigmoid();
  const torch::Tensor sizes = sizes_ ? log_sizes(memory) : torch::Tensor();
  std::vector<Scored> out;
  for (int64_t i = 0; i < p.size(0); ++i)
    out.push_back({.labels = to_floats(p[i]),
                   .log_sizes = sizes_ ? to_floats(sizes[i]) : std::vector<float>{}});
  return out;
}

std::vector<Named> SetPredictor::told(const Memory& memory) {
  const int64_t items = memory.keys.size(0);
  std::vector<Named> out(static_cast<size_t>(items)), likeliest(static_cast<size_t>(items));
  std::vector<bool> ended(static_cast<size_t>(items));
  torch::Tensor inputs =
      torch::full({items, 1}, start(), memory.keys.options().dtype(torch::kInt64));
  for (int64_t step = 0; step < shape_.largest; ++step) {
    const torch::Tensor p = last_logits(inputs, memory).softmax(1).cpu();
    const torch::Tensor best = p.argmax(1), label = p.slice(1, 0, shape_.labels).argmax(1);
    for (int64_t i = 0; i < items; ++i) {
      const auto at = static_cast<size_t>(i);
      const int64_t next = label[i].item<int64_t>();
      if (step == 0) likeliest[at] = {{next}, {p[i][next].item<float>()}};
      ended[at] = ended[at] || best[i].item<int64_t>() == shape_.labels;
      if (ended[at]) continue;
      out[at].labels.push_back(next);
      out[at].probabilities.push_back(p[i][next].item<float>());
    }
    if (std::all_of(ended.begin(), ended.end(), [](bool done) { return done; })) break;
    inputs = torch::cat({inputs, label.unsqueeze(1).to(inputs.device())}, 1);
  }
  if (!shape_.may_be_empty)
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].labels.empty()) out[i] = likeliest[i];
  return out;
}

std::vector<Named> SetPredictor::name(const Memory& memory) {
  if (predictor_.steps()) return told(memory);
  std::vector<Named> out;
  for (const Scored& one : scored(memory)) {
    Named& named = out.emplace_back();
    named.labels = chosen(one, rule(), cut(), bounds());
    for (const int64_t label : named.labels)
      named.probabilities.push_back(one.labels[static_cast<size_t>(label)]);
  }
  return out;
}

std::vector<torch::Tensor> SetPredictor::weights_of(const Memory& memory, const LabelSet& labels) {
  const nn::Attention seen{.key_lengths = memory.lengths};
  if (labels.empty()) return {};
  if (!predictor_.steps() && !cross_) {  // pooled by the mean
    const int64_t keys =
        memory.lengths.defined() ? memory.lengths.item<int>() : memory.keys.size(1);
    torch::Tensor even = torch::zeros({1, static_cast<int64_t>(labels.size()), memory.keys.size(1)},
                                      memory.keys.options());
    even.slice(2, 0, keys).fill_(1 / static_cast<double>(std::max<int64_t>(1, keys)));
    return {even};
  }
  const torch::Tensor numbers = torch::tensor(labels, torch::kInt64).to(memory.keys.device());
  if (!predictor_.steps())
    return {cross_->weights(slots_.index_select(0, numbers).unsqueeze(0), memory.keys, seen)
                .weights[0]};
  const torch::Tensor inputs =
      torch::cat({torch::full({1}, start(), numbers.options()), numbers.slice(0, 0, -1)})
          .unsqueeze(0);
  if (!decoder_)
    return {cross_->weights(recurrent(embedding_(inputs), memory), memory.keys, seen).weights[0]};
  std::vector<torch::Tensor> out;
  const nn::Attention causal{.structure = Causal{}};
  torch::Tensor x = embedding_(inputs);
  for (int64_t i = 0; i < shape_.layers; ++i) {
    nn::DecoderLayerImpl& layer = decoder_->layer(i);
    const torch::Tensor asked = layer.cross_attended(layer.after_self(x, causal));
    out.push_back(layer.multihead_attn->weights(asked, memory.keys, seen).weights[0]);
    x = layer.forward(x, memory.keys, causal, seen);
  }
  return out;
}

}  // namespace fovea::systems::image_to_set
