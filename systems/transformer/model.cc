#include "systems/transformer/model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "train/usage_error.h"
#include "translate/embedding.h"

namespace fovea::systems {

using translate::AttentionMaps;
using translate::Batch;
using translate::Want;

TransformerModel::TransformerModel(const TransformerConfig& config,
                                   const translate::Vocabularies& vocabularies)
    : config_(config) {
  const int64_t layers = config.stacks.decoder_layers, heads = config.stacks.layer.heads;
  if (config.align_layer < -layers || config.align_layer >= layers)
    throw UsageError(fmt::format("--set align_layer={}: expected {} to {}, a decoder layer",
                                 config.align_layer, -layers, layers - 1));
  if (config.align_head >= heads)
    throw UsageError(fmt::format("--set align_head={}: expected -1 to {}, a head",
                                 config.align_head, heads - 1));
  const int64_t width = config.stacks.layer.width;
  scale_ = std::sqrt(static_cast<double>(width));
  transformer_ = register_module("transformer", nn::Transformer(config.stacks));
  target_ = register_module("target_embedding",
                            translate::token_embedding(vocabularies.target, width, 1 / scale_));
  if (config.tie_embeddings && vocabularies.shared) {
    source_ = target_;
  } else {
    source_ = register_module("source_embedding",
                              translate::token_embedding(vocabularies.source, width, 1 / scale_));
  }
  if (!config.tie_embeddings)
    output_ = register_module("output", torch::nn::Linear(width, vocabularies.target));
}

at::Tensor TransformerModel::embed(torch::nn::Embedding& embedding, const at::Tensor& tokens,
                                   int64_t first_position) {
  const int64_t end = first_position + tokens.size(1);
  const at::Tensor x =
      embedding(tokens) * scale_ + positions(end, tokens.device()).slice(0, first_position, end);
  return at::dropout(x, config_.embedding_dropout, is_training());
}

at::Tensor TransformerModel::positions(int64_t count, const at::Device& device) {
  const std::lock_guard lock(growing_);
  if (!positions_.defined() || positions_.size(0) < count || positions_.device() != device)
    positions_ =
        nn::position_encoding(std::max<int64_t>(count, 256), config_.stacks.layer.width).to(device);
  return positions_;
}

at::Tensor TransformerModel::encode(const Batch& batch) {
  return transformer_->encoder->forward(embed(source_, batch.source, 0),
                                        {.key_lengths = batch.source_lengths});
}

at::Tensor TransformerModel::project(const at::Tensor& hidden) {
  return output_ ? output_(hidden) : at::linear(hidden, target_->weight);
}

at::Tensor TransformerModel::logits(const Batch& batch) {
  // Padding stands at the end of a target: causal attention hides it from every real position.
  const at::Tensor hidden = transformer_->decoder->forward(embed(target_, batch.target_in, 0),
                                                           encode(batch), {.structure = Causal{}},
                                                           {.key_lengths = batch.source_lengths});
  return project(hidden);
}

// Decoding with the keys and values of earlier positions kept.
class TransformerModel::Steps : public nn::StepModel {
 public:
  Steps(TransformerModel& model, const Batch& sources, Want want)
      : model_(model),
        want_(want),
        cache_(model.transformer_->decoder->start(model.encode(sources), sources.source_lengths)) {}

  void select(const at::Tensor& rows) override { cache_.select(rows); }

  nn::StepOutput step(const at::Tensor& tokens) override {
    const c10::Device device = model_.target_->weight.device();
    at::Tensor x = model_.embed(model_.target_, tokens.to(device).unsqueeze(1), position_++);
    nn::StepOutput out;
    if (want_ == Want::kAttention)
      std::tie(x, out.attention) = attentive_step(x);
    else
      x = model_.transformer_->decoder->step(x, cache_);
    out.logits = model_.project(x.squeeze(1));
    return out;
  }

 private:
  // The step, and the alignment layer's cross attention in it: [rows, S].
  std::pair<at::Tensor, at::Tensor> attentive_step(at::Tensor x) {
    nn::DecoderImpl& decoder = *model_.transformer_->decoder;
    const int64_t layers = static_cast<int64_t>(cache_.self.size());
    const int64_t chosen = (model_.config_.align_layer + layers) % layers;
    at::Tensor attention;
    for (int64_t l = 0; l < layers; ++l) {
      nn::DecoderLayerImpl& layer = decoder.layer(l);
      const nn::HeadsCache& memory = cache_.memory[static_cast<size_t>(l)];
      const at::Tensor y = layer.self_step(x, cache_.self[static_cast<size_t>(l)]);
      if (l == chosen) {
        const at::Tensor query = cache_.readers.gathered(layer.cross_attended(y));
        const at::Tensor weights =
            layer.multihead_attn
                ->cached_weights(query, memory, {.key_lengths = cache_.readers.lengths()})
                .weights;
        const int64_t head = model_.config_.align_head;
        const at::Tensor rows =
            head < 0 ? weights.mean(1) : weights.select(1, head);  // [memories, readers, S]
        attention = cache_.readers.scattered(rows).squeeze(1);
      }
      x = layer.cross_step(y, memory, cache_.readers);
    }
    return {decoder.norm ? decoder.norm(x) : x, attention};
  }

  TransformerModel& model_;
  Want want_;
  nn::DecoderCache cache_;
  int64_t position_ = 0;
};

std::unique_ptr<nn::StepModel> TransformerModel::start(const Batch& sources, Want want) {
  return std::make_unique<Steps>(*this, sources, want);
}

at::Tensor TransformerModel::cross_weights(const Batch& batch) {
  const nn::Attention cross{.key_lengths = batch.source_lengths}, self{.structure = Causal{}};
  const at::Tensor memory = encode(batch);
  at::Tensor x = embed(target_, batch.target_in, 0);
  std::vector<at::Tensor> layers;
  nn::DecoderImpl& decoder = *transformer_->decoder;
  for (int64_t l = 0; l < static_cast<int64_t>(decoder.layers->size()); ++l) {
    nn::DecoderLayerImpl& layer = decoder.layer(l);
    layers.push_back(layer.multihead_attn
                         ->weights(layer.cross_attended(layer.after_self(x, self)), memory, cross)
                         .weights);
    x = layer.forward(x, memory, self, cross);
  }
  return at::stack(layers);
}

at::Tensor TransformerModel::alignment(const Batch& batch) {
  const at::Tensor all = cross_weights(batch);
  const at::Tensor layer =
      all.select(0, (config_.align_layer + all.size(0)) % all.size(0));  // [B, heads, T, S]
  return config_.align_head < 0 ? layer.mean(1) : layer.select(1, config_.align_head);
}

std::vector<AttentionMaps> TransformerModel::maps(const Batch& batch) {
  const nn::Attention seen{.key_lengths = batch.source_lengths}, causal{.structure = Causal{}};
  const std::string scale =
      "1/√" + std::to_string(config_.stacks.layer.width / config_.stacks.layer.heads);
  const auto described = [&](AttentionMaps::Kind kind, std::string title, std::string structure,
                             const at::Tensor& weights) {
    return AttentionMaps{kind,  std::move(title), "scaled dot", "softmax", std::move(structure),
                         scale, weights};
  };
  std::vector<at::Tensor> encoder, decoder;
  at::Tensor x = embed(source_, batch.source, 0);
  for (int64_t l = 0; l < static_cast<int64_t>(transformer_->encoder->layers->size()); ++l) {
    nn::EncoderLayerImpl& layer = transformer_->encoder->layer(l);
    const at::Tensor input = layer.attended(x);
    encoder.push_back(layer.self_attn->weights(input, input, seen).weights[0]);
    x = layer.forward(x, seen);
  }
  const at::Tensor memory = encode(batch);
  x = embed(target_, batch.target_in, 0);
  for (int64_t l = 0; l < static_cast<int64_t>(transformer_->decoder->layers->size()); ++l) {
    nn::DecoderLayerImpl& layer = transformer_->decoder->layer(l);
    const at::Tensor input = layer.self_attended(x);
    decoder.push_back(layer.self_attn->weights(input, input, causal).weights[0]);
    x = layer.forward(x, memory, causal, seen);
  }
  return {described(AttentionMaps::Kind::kCross, "Cross attention: output on source", "source",
                    cross_weights(batch).select(1, 0)),
          described(AttentionMaps::Kind::kSource, "Encoder self-attention", "dense",
                    at::stack(encoder)),
          described(AttentionMaps::Kind::kTarget, "Decoder self-attention", "causal",
                    at::stack(decoder))};
}

}  // namespace fovea::systems
