#include "systems/convs2s/model.h"

#include <ATen/ATen.h>

#include <cmath>

#include "translate/embedding.h"

namespace fovea::systems {
namespace {

const double kHalf = std::sqrt(0.5);  // keeps the variance of a sum of two

torch::nn::ModuleList convolutions(int64_t layers, const ConvS2SConfig& config) {
  torch::nn::ModuleList list;
  for (int64_t l = 0; l < layers; ++l)
    list->push_back(
        torch::nn::Conv1d(torch::nn::Conv1dOptions(config.width, 2 * config.width, config.kernel)));
  return list;
}

// A gated convolution of x [B, T, width], which is padded by `left` and `right` zeros.
at::Tensor gated(torch::nn::ModuleList& list, size_t layer, const at::Tensor& x, int64_t left,
                 int64_t right) {
  auto& convolution = *list->at<torch::nn::Conv1dImpl>(layer).as<torch::nn::Conv1dImpl>();
  return at::glu(convolution.forward(at::constant_pad_nd(x.transpose(1, 2), {left, right})), 1)
      .transpose(1, 2);
}

at::Tensor linear(torch::nn::ModuleList& list, size_t layer, const at::Tensor& x) {
  return list->at<torch::nn::LinearImpl>(layer).as<torch::nn::LinearImpl>()->forward(x);
}

}  // namespace

using translate::AttentionMaps;
using translate::Batch;
using translate::Want;

ConvS2SModel::ConvS2SModel(const ConvS2SConfig& config, const translate::Vocabularies& vocabularies)
    : config_(config) {
  if (config.kernel % 2 == 0)
    throw InvalidArgument("kernel: " + std::to_string(config.kernel) + ", expected an odd number");
  const int64_t d = config.width;
  source_ =
      register_module("source_embedding", translate::token_embedding(vocabularies.source, d, 0.1));
  target_ =
      register_module("target_embedding", translate::token_embedding(vocabularies.target, d, 0.1));
  source_position_ = register_module("source_position", torch::nn::Embedding(config.longest, d));
  target_position_ = register_module("target_position", torch::nn::Embedding(config.longest, d));
  encoder_ = register_module("encoder", convolutions(config.encoder_layers, config));
  decoder_ = register_module("decoder", convolutions(config.decoder_layers, config));
  into_attention_ = register_module("into_attention", torch::nn::ModuleList());
  out_of_attention_ = register_module("out_of_attention", torch::nn::ModuleList());
  for (int64_t l = 0; l < config.decoder_layers; ++l) {
    into_attention_->push_back(torch::nn::Linear(d, d));
    out_of_attention_->push_back(torch::nn::Linear(d, d));
  }
  output_ = register_module("output", torch::nn::Linear(d, vocabularies.target));
  const torch::NoGradGuard no_grad;
  source_position_->weight.normal_(0, 0.1);
  target_position_->weight.normal_(0, 0.1);
}

at::Tensor ConvS2SModel::embed(torch::nn::Embedding& tokens, torch::nn::Embedding& positions,
                               const at::Tensor& ids) {
  if (ids.size(1) > config_.longest) {
    throw InvalidArgument("sentence: " + std::to_string(ids.size(1)) +
                          " tokens, expected at most " + std::to_string(config_.longest));
  }
  const at::Tensor x = tokens(ids) + positions(at::arange(ids.size(1), ids.options()));
  return at::dropout(x, config_.dropout, is_training());
}

ConvS2SModel::Memory ConvS2SModel::encode(const Batch& batch) {
  const at::Tensor embedded = embed(source_, source_position_, batch.source);
  const at::Tensor real =
      batch.source.ne(translate::kPad).unsqueeze(-1);  // padding is zero to every convolution
  const int64_t side = config_.kernel / 2;
  at::Tensor x = embedded * real;
  for (size_t l = 0; l < encoder_->size(); ++l) {
    x = (gated(encoder_, l, at::dropout(x, config_.dropout, is_training()), side, side) + x) *
        kHalf * real;
  }
  return {x, (x + embedded) * kHalf, batch.source_lengths};
}

at::Tensor ConvS2SModel::decode(const Memory& memory, const at::Tensor& target_in,
                                std::vector<at::Tensor>* rows) {
  const at::Tensor embedded = embed(target_, target_position_, target_in);
  const at::Tensor keys = memory.keys.unsqueeze(1), values = memory.values.unsqueeze(1);
  at::Tensor x = embedded;
  for (size_t l = 0; l < decoder_->size(); ++l) {
    at::Tensor h = gated(decoder_, l, at::dropout(x, config_.dropout, is_training()),
                         config_.kernel - 1, 0);  // left only: no future
    const at::Tensor query = ((linear(into_attention_, l, h) + embedded) * kHalf).unsqueeze(1);
    const Choices choices{.score = Dot{1.0}};
    const at::Tensor context =
        attend(query, keys, values, choices, {.key_lengths = memory.lengths}).squeeze(1);
    if (rows != nullptr)
      rows->push_back(fovea::weights(query, keys, choices, {}, {.key_lengths = memory.lengths})
                          .weights.squeeze(1));
    h = (h + linear(out_of_attention_, l, context)) * kHalf;
    x = (h + x) * kHalf;
  }
  return output_(at::dropout(x, config_.dropout, is_training()));
}

at::Tensor ConvS2SModel::logits(const Batch& batch) {
  return decode(encode(batch), batch.target_in, nullptr);
}

// Every step decodes its whole prefix again, because the convolutions keep no state.
class ConvS2SModel::Steps : public nn::StepModel {
 public:
  Steps(ConvS2SModel& model, const Batch& sources, Want want)
      : model_(model), want_(want), memory_(model.encode(sources)) {}
  void select(const at::Tensor& rows) override {
    const at::Tensor r = rows.to(memory_.keys.device());
    for (at::Tensor* t : {&memory_.keys, &memory_.values}) *t = t->index_select(0, r);
    memory_.lengths = memory_.lengths.index_select(0, rows);
    if (prefix_.defined()) prefix_ = prefix_.index_select(0, r);
  }
  nn::StepOutput step(const at::Tensor& tokens) override {
    const at::Tensor last = tokens.to(memory_.keys.device()).unsqueeze(1);
    prefix_ = prefix_.defined() ? at::cat({prefix_, last}, 1) : last;
    std::vector<at::Tensor> rows;
    const at::Tensor logits =
        model_.decode(memory_, prefix_, want_ == Want::kAttention ? &rows : nullptr);
    nn::StepOutput out;
    out.logits = logits.select(1, -1);
    if (!rows.empty()) out.attention = at::stack(rows).mean(0).select(1, -1);
    return out;
  }

 private:
  ConvS2SModel& model_;
  Want want_;
  Memory memory_;
  at::Tensor prefix_;
};

std::unique_ptr<nn::StepModel> ConvS2SModel::start(const Batch& sources, Want want) {
  return std::make_unique<Steps>(*this, sources, want);
}

std::vector<at::Tensor> ConvS2SModel::layer_weights(const Batch& batch) {
  std::vector<at::Tensor> rows;
  decode(encode(batch), batch.target_in, &rows);
  return rows;
}

at::Tensor ConvS2SModel::alignment(const Batch& batch) {
  return at::stack(layer_weights(batch)).mean(0);
}

std::vector<AttentionMaps> ConvS2SModel::maps(const Batch& batch) {
  const at::Tensor layers = at::stack(layer_weights(batch));  // [layers, 1, T, S]
  return {{AttentionMaps::Kind::kCross, "Attention of each decoder layer", "dot", "softmax",
           "source", "1", layers}};
}

}  // namespace fovea::systems
