#include "translate/stack_model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "fovea/nn/transformer.h"
#include "nn/products/product.h"
#include "train/usage_error.h"
#include "translate/embedding.h"

namespace fovea::translate {

void AlignmentHead::check(int64_t layers, int64_t heads) const {
  if (layer < -layers || layer >= layers)
    throw UsageError(fmt::format("--set align_layer={}: expected {} to {}, a decoder layer", layer,
                                 -layers, layers - 1));
  if (head >= heads)
    throw UsageError(
        fmt::format("--set align_head={}: expected -1 to {}, a head", head, heads - 1));
}

at::Tensor AlignmentHead::of(const at::Tensor& weights) const {
  return head < 0 ? weights.mean(-3) : weights.select(-3, head);
}

std::vector<Option> stack_options() {
  return {
      Option("width", 128, "width of the model").between(1, 8192),
      Option("heads", 4, "number of heads; must divide the width").between(1, 256),
      Option("hidden", 256, "width of the feed-forward nets").between(1, 65536),
      Option("layers", 2, "number of layers of the encoder and of the decoder").between(1, 128),
      Option("dropout", 0.0,
             "dropout of embeddings and sublayers; for real text use 0.1 to 0.3, with "
             "label_smoothing=0.1")
          .between(0, 0.9),
      Option("attention_dropout", 0.0, "dropout of the attention weights").between(0, 0.9),
      Option("norm", "post", "layer normalisation after each sublayer (the paper's) or before it")
          .among({"post", "pre"}),
      Option("tie", true,
             "share embeddings with the output, and between the languages if they have one "
             "vocabulary"),
      Option("align_layer", -1,
             "decoder layer whose cross attention is the alignment; negative counts from the last")
          .between(-128, 127)
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain}),
      Option("align_head", -1, "the head of that layer; -1 is the mean of all")
          .between(-1, 255)
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain})};
}

nn::LayerOptions layer_options(const OptionValues& o) {
  return {.width = o.integer("width"),
          .heads = o.integer("heads"),
          .hidden = o.integer("hidden"),
          .dropout = o.number("dropout"),
          .attention_dropout = o.number("attention_dropout"),
          .order = o.text("norm") == "pre" ? nn::NormOrder::kPre : nn::NormOrder::kPost};
}

StackConfig stack_config(const OptionValues& o) {
  return {.width = o.integer("width"),
          .embedding_dropout = o.number("dropout"),
          .tie_embeddings = o.flag("tie"),
          .aligned = {.layer = o.integer("align_layer"), .head = o.integer("align_head")}};
}

void StackModel::make_embeddings(const Vocabularies& vocabularies) {
  scale_ = std::sqrt(static_cast<double>(config_.width));
  target_ = register_module("target_embedding",
                            token_embedding(vocabularies.target, config_.width, 1 / scale_));
  if (config_.tie_embeddings && vocabularies.shared) {
    source_ = target_;
  } else {
    source_ = register_module("source_embedding",
                              token_embedding(vocabularies.source, config_.width, 1 / scale_));
  }
  if (!config_.tie_embeddings)
    output_ = register_module("output", torch::nn::Linear(config_.width, vocabularies.target));
}

at::Tensor StackModel::embed(torch::nn::Embedding& embedding, const at::Tensor& tokens,
                             int64_t first_position) {
  const int64_t end = first_position + tokens.size(1);
  const at::Tensor x =
      embedding(tokens) * scale_ + positions(end, tokens.device()).slice(0, first_position, end);
  return at::dropout(x, config_.embedding_dropout, is_training());
}

at::Tensor StackModel::positions(int64_t count, const at::Device& device) {
  const std::lock_guard lock(growing_);
  if (!positions_.defined() || positions_.size(0) < count || positions_.device() != device)
    positions_ = nn::position_encoding(std::max<int64_t>(count, 256), config_.width).to(device);
  return positions_;
}

at::Tensor StackModel::project(const at::Tensor& hidden) {
  return output_ ? nn::projected(hidden, output_) : nn::projected(hidden, target_->weight);
}

at::Tensor StackModel::logits(const Batch& batch) {
  return project(decode(embed_target(batch.target_in), encoded(batch), batch.source_lengths));
}

// Decoding with what earlier positions left kept.
class StackModel::Steps : public nn::StepModel {
 public:
  Steps(StackModel& model, const Batch& sources, Want want)
      : model_(model),
        want_(want),
        cache_(model.start_decoder(model.encoded(sources), sources.source_lengths)) {}

  void select(const at::Tensor& rows) override { cache_.select(rows); }

  nn::StepOutput step(const at::Tensor& tokens) override {
    const c10::Device device = model_.target_->weight.device();
    const at::Tensor x = model_.embed_target(tokens.to(device).unsqueeze(1), position_++);
    nn::StepOutput out;
    const at::Tensor y =
        model_.step(x, cache_, want_ == Want::kAttention ? &out.attention : nullptr);
    out.logits = model_.project(y.squeeze(1));
    return out;
  }

 private:
  StackModel& model_;
  Want want_;
  nn::DecoderCache cache_;
  int64_t position_ = 0;
};

std::unique_ptr<nn::StepModel> StackModel::start(const Batch& sources, Want want) {
  return std::make_unique<Steps>(*this, sources, want);
}

at::Tensor StackModel::alignment(const Batch& batch) {
  const at::Tensor all = cross_weights(batch);
  return aligned().of(all.select(0, (aligned().layer + all.size(0)) % all.size(0)));
}

}  // namespace fovea::translate
