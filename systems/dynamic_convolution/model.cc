#include "systems/dynamic_convolution/model.h"

#include <ATen/ATen.h>

#include "systems/dynamic_convolution/view.h"

namespace fovea::systems {

using translate::AttentionMaps;
using translate::Batch;

DynamicConvolutionModel::DynamicConvolutionModel(const DynamicConvolutionConfig& config,
                                                 const translate::Vocabularies& vocabularies)
    : StackModel(config.ends) {
  const int64_t parts = config.stacks.mixing == nn::Mixing::kQuaternion ? 4 : 1;
  config.ends.aligned.check(config.stacks.decoder_layers, parts * config.stacks.layer.heads);
  stacks_ = register_module("stacks", nn::LightTransformer(config.stacks));
  make_embeddings(vocabularies);
}

at::Tensor DynamicConvolutionModel::encode(const at::Tensor& x, const at::Tensor& lengths) {
  return stacks_->encode(x, lengths);
}

at::Tensor DynamicConvolutionModel::decode(const at::Tensor& x, const at::Tensor& memory,
                                           const at::Tensor& lengths) {
  return stacks_->decode(x, memory, lengths);
}

nn::DecoderCache DynamicConvolutionModel::start_decoder(const at::Tensor& memory,
                                                        const at::Tensor& lengths) {
  return stacks_->start(memory, lengths);
}

at::Tensor DynamicConvolutionModel::step(const at::Tensor& given, nn::DecoderCache& cache,
                                         at::Tensor* attention) {
  if (!attention) return stacks_->step(given, cache);
  const int64_t layers = stacks_->options().decoder_layers;
  at::Tensor x = given;
  for (int64_t l = 0; l < layers; ++l) {
    nn::LightLayerImpl& layer = stacks_->decoder_layer(l);
    const nn::HeadsCache& memory = cache.memory[static_cast<size_t>(l)];
    x = layer.mix_step(x, cache.self[static_cast<size_t>(l)]);
    if (aligned().is(l, layers)) {
      const at::Tensor weights =
          layer.read_weights(cache.readers.gathered(x), memory, cache.readers.lengths());
      *attention = cache.readers.scattered(aligned().of(weights)).squeeze(1);
    }
    x = layer.feed(layer.read_step(x, memory, cache.readers));
  }
  return stacks_->finished(x);
}

at::Tensor DynamicConvolutionModel::cross_weights(const Batch& batch) {
  const at::Tensor memory = encoded(batch);
  at::Tensor x = embed_target(batch.target_in);
  std::vector<at::Tensor> layers;
  for (int64_t l = 0; l < stacks_->options().decoder_layers; ++l) {
    nn::LightLayerImpl& layer = stacks_->decoder_layer(l);
    const nn::HeadsCache projected = layer.project(memory);
    x = layer.mix(x, {});
    layers.push_back(layer.read_weights(x, projected, batch.source_lengths));
    x = layer.feed(layer.read(x, projected, batch.source_lengths));
  }
  return at::stack(layers);
}

std::string DynamicConvolutionModel::cross_scale() const {
  const nn::LayerOptions& layer = stacks_->options().layer;
  return "1/√" + std::to_string(layer.width / layer.heads);
}

AttentionMaps DynamicConvolutionModel::described(AttentionMaps::Kind kind,
                                                 const Mixed& mixed) const {
  const bool source = kind == AttentionMaps::Kind::kSource;
  const std::string side = source ? "Encoder" : "Decoder";
  const at::Tensor weights = at::stack(mixed.weights);
  if (stacks_->options().mixing == nn::Mixing::kQuaternion)
    return {kind,
            side + " self-attention of quaternions: parts r, i, j, k of each head",
            "Hamilton product",
            "softmax of each part",
            source ? "dense" : "causal",
            cross_scale(),
            weights};
  const bool light = stacks_->options().mixing == nn::Mixing::kLight;
  AttentionMaps maps{kind,
                     side + " convolution: a band around the diagonal",
                     light ? "learned, by the offset" : "linear in the word, by the offset",
                     "softmax over offsets",
                     source ? "window" : "window, causal",
                     "1",
                     weights};
  for (size_t l = 0; l < mixed.kernels.size(); ++l)
    maps.plots.push_back(kernel_bars(mixed.kernels[l][0],
                                     source ? KernelSide::kBoth : KernelSide::kBefore,
                                     side + " layer " + std::to_string(l + 1)));
  return maps;
}

std::vector<AttentionMaps> DynamicConvolutionModel::maps(const Batch& batch) {
  const auto mixed_by = [&](nn::LightLayerImpl& layer, const at::Tensor& x,
                            const at::Tensor& lengths, Mixed& mixed) {
    mixed.weights.push_back(layer.mix_weights(x, lengths)[0]);
    const at::Tensor kernels = layer.kernels(x, lengths);
    if (kernels.defined()) mixed.kernels.push_back(kernels);
    return layer.mix(x, lengths);
  };
  Mixed encoder, decoder;
  at::Tensor x = embed_source(batch);
  for (int64_t l = 0; l < stacks_->options().encoder_layers; ++l) {
    nn::LightLayerImpl& layer = stacks_->encoder_layer(l);
    x = layer.feed(mixed_by(layer, x, batch.source_lengths, encoder));
  }
  const at::Tensor memory = encoded(batch);
  x = embed_target(batch.target_in);
  for (int64_t l = 0; l < stacks_->options().decoder_layers; ++l) {
    nn::LightLayerImpl& layer = stacks_->decoder_layer(l);
    x = layer.feed(
        layer.read(mixed_by(layer, x, {}, decoder), layer.project(memory), batch.source_lengths));
  }
  const bool quaternion = stacks_->options().mixing == nn::Mixing::kQuaternion;
  return {described(AttentionMaps::Kind::kSource, encoder),
          described(AttentionMaps::Kind::kTarget, decoder),
          {AttentionMaps::Kind::kCross, "Cross attention: output on source",
           quaternion ? "Hamilton product" : "scaled dot", "softmax", "source", cross_scale(),
           cross_weights(batch).select(1, 0)}};
}

}  // namespace fovea::systems
