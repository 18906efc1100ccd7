#include "systems/transformer/model.h"

#include <ATen/ATen.h>

namespace fovea::systems {

using translate::AttentionMaps;
using translate::Batch;

TransformerModel::TransformerModel(const TransformerConfig& config,
                                   const translate::Vocabularies& vocabularies)
    : StackModel(config.ends) {
  config.ends.aligned.check(config.stacks.decoder_layers, config.stacks.layer.heads);
  transformer_ = register_module("transformer", nn::Transformer(config.stacks));
  make_embeddings(vocabularies);
}

at::Tensor TransformerModel::encode(const at::Tensor& x, const at::Tensor& lengths) {
  return transformer_->encoder->forward(x, {.key_lengths = lengths});
}

// Padding stands at the end of a target: causal attention hides it from every real position.
at::Tensor TransformerModel::decode(const at::Tensor& x, const at::Tensor& memory,
                                    const at::Tensor& lengths) {
  return transformer_->decoder->forward(x, memory, {.structure = Causal{}},
                                        {.key_lengths = lengths});
}

nn::DecoderCache TransformerModel::start_decoder(const at::Tensor& memory,
                                                 const at::Tensor& lengths) {
  return transformer_->decoder->start(memory, lengths);
}

at::Tensor TransformerModel::step(const at::Tensor& given, nn::DecoderCache& cache,
                                  at::Tensor* attention) {
  nn::DecoderImpl& decoder = *transformer_->decoder;
  if (!attention) return decoder.step(given, cache);
  const int64_t layers = static_cast<int64_t>(cache.self.size());
  at::Tensor x = given;
  for (int64_t l = 0; l < layers; ++l) {
    nn::DecoderLayerImpl& layer = decoder.layer(l);
    const nn::HeadsCache& memory = cache.memory[static_cast<size_t>(l)];
    const at::Tensor y = layer.self_step(x, cache.self[static_cast<size_t>(l)]);
    if (aligned().is(l, layers)) {
      const at::Tensor query = cache.readers.gathered(layer.cross_attended(y));
      const at::Tensor weights =
          layer.multihead_attn
              ->cached_weights(query, memory, {.key_lengths = cache.readers.lengths()})
              .weights;
      *attention = cache.readers.scattered(aligned().of(weights)).squeeze(1);
    }
    x = layer.cross_step(y, memory, cache.readers);
  }
  return decoder.norm ? decoder.norm(x) : x;
}

at::Tensor TransformerModel::cross_weights(const Batch& batch) {
  const nn::Attention cross{.key_lengths = batch.source_lengths}, self{.structure = Causal{}};
  const at::Tensor memory = encoded(batch);
  at::Tensor x = embed_target(batch.target_in);
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

std::vector<AttentionMaps> TransformerModel::maps(const Batch& batch) {
  const nn::Attention seen{.key_lengths = batch.source_lengths}, causal{.structure = Causal{}};
  const nn::MultiHeadImpl& heads = *transformer_->encoder->layer(0).self_attn;
  const std::string scale = "1/√" + std::to_string(heads.options().width / heads.options().heads);
  const auto described = [&](AttentionMaps::Kind kind, std::string title, std::string structure,
                             const at::Tensor& weights) {
    return AttentionMaps{kind,  std::move(title), "scaled dot", "softmax", std::move(structure),
                         scale, weights};
  };
  std::vector<at::Tensor> encoder, decoder;
  at::Tensor x = embed_source(batch);
  for (int64_t l = 0; l < static_cast<int64_t>(transformer_->encoder->layers->size()); ++l) {
    nn::EncoderLayerImpl& layer = transformer_->encoder->layer(l);
    const at::Tensor input = layer.attended(x);
    encoder.push_back(layer.self_attn->weights(input, input, seen).weights[0]);
    x = layer.forward(x, seen);
  }
  const at::Tensor memory = encoded(batch);
  x = embed_target(batch.target_in);
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
