#include "fovea/nn/light_transformer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "nn/positive.h"
#include "nn/sublayer.h"

namespace fovea::nn {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

Affine affine(const torch::nn::Linear& linear) { return linear; }
Affine affine(const QuaternionLinear& linear) { return {linear->real_weight(), linear->bias}; }
template <class... Linears>
Affine affine(const std::variant<Linears...>& linear) {
  return std::visit([](const auto& one) { return affine(one); }, linear);
}

Affine output_of(const Convolution& mixer) { return affine(mixer->linear2); }
Affine output_of(const MultiHead& mixer) { return affine(mixer->out_proj); }
Affine output_of(const QuaternionMultiHead& mixer) { return affine(mixer->out_proj); }
template <class... Mixers>
Affine output_of(const std::variant<Mixers...>& mixer) {
  return std::visit([](const auto& one) { return output_of(one); }, mixer);
}

torch::nn::LayerNorm norm_of(int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

torch::nn::Linear spread_linear(int64_t inputs, int64_t outputs) {
  torch::nn::Linear out(inputs, outputs);
  torch::nn::init::xavier_uniform_(out->weight);
  return out;
}

}  // namespace

LightLayerImpl::LightLayerImpl(const LightTransformerOptions& options, Stack stack, int64_t kernel)
    : options_(options), stack_(stack), kernel_(kernel) {
  reset();
}

void LightLayerImpl::reset() {
  const LayerOptions& o = options_.layer;
  const MultiHeadOptions heads{.width = o.width, .heads = o.heads, .dropout = o.attention_dropout};
  const bool decoder = stack_ == Stack::kDecoder;
  if (options_.mixing == Mixing::kQuaternion) {
    self_ = register_module("self_attn", QuaternionMultiHead(heads));
    if (decoder) cross_ = register_module("multihead_attn", QuaternionMultiHead(heads));
    linear1_ = register_module("linear1", QuaternionLinear(o.width, o.hidden));
    linear2_ = register_module("linear2", QuaternionLinear(o.hidden, o.width));
  } else {
    self_ = register_module(
        "convolution",
        Convolution(ConvolutionOptions{
            .width = o.width,
            .heads = o.heads,
            .kernel = kernel_,
            .kernels = options_.mixing == Mixing::kLight ? Kernels::kLight : Kernels::kDynamic,
            .reach = decoder ? Reach::kCausal : Reach::kBoth,
            .edges = options_.edges,
            .dropout = o.attention_dropout}));
    if (decoder) cross_ = register_module("multihead_attn", MultiHead(heads));
    linear1_ = register_module("linear1", spread_linear(o.width, o.hidden));
    linear2_ = register_module("linear2", spread_linear(o.hidden, o.width));
  }
  norm1_ = register_module("norm1", norm_of(o.width));
  if (decoder) norm2_ = register_module("norm2", norm_of(o.width));
  norm3_ = register_module("norm3", norm_of(o.width));
}

at::Tensor LightLayerImpl::mix(const at::Tensor& x, const at::Tensor& lengths) {
  const Attention attention{
      .structure = stack_ == Stack::kDecoder ? Structure(Causal{}) : Structure(Dense{}),
      .key_lengths = lengths};
  return mixing_sublayer(
      x, output_of(self_), norm1_, options_.layer.order, dropout(), [&](const at::Tensor& y) {
        return std::visit(
            Overloaded{[&](Convolution& m) { return m->mixed(y, lengths); },
                       [&](QuaternionMultiHead& m) { return m->heads(y, y, attention); }},
            self_);
      });
}

at::Tensor LightLayerImpl::mix_step(const at::Tensor& x, StepCache& cache) {
  return mixing_sublayer(
      x, output_of(self_), norm1_, options_.layer.order, dropout(), [&](const at::Tensor& y) {
        return std::visit(
            Overloaded{[&](Convolution& m) { return m->step_mixed(y, cache); },
                       [&](QuaternionMultiHead& m) { return m->step_heads(y, cache); }},
            self_);
      });
}

HeadsCache LightLayerImpl::project(const at::Tensor& memory) {
  return std::visit(Overloaded{[&](MultiHead& m) { return m->project(memory, memory); },
                               [&](QuaternionMultiHead& m) { return m->project(memory); }},
                    cross_);
}

at::Tensor LightLayerImpl::read_heads(const at::Tensor& x, const HeadsCache& memory,
                                      const Attention& attention) {
  return std::visit([&](auto& m) { return m->cached_heads(x, memory, attention); }, cross_);
}

at::Tensor LightLayerImpl::read(const at::Tensor& x, const HeadsCache& memory,
                                const at::Tensor& lengths) {
  return mixing_sublayer(
      x, output_of(cross_), norm2_, options_.layer.order, dropout(),
      [&](const at::Tensor& y) { return read_heads(y, memory, {.key_lengths = lengths}); });
}

at::Tensor LightLayerImpl::read_step(const at::Tensor& x, const HeadsCache& memory,
                                     const Readers& readers) {
  return mixing_sublayer(
      x, output_of(cross_), norm2_, options_.layer.order, dropout(), [&](const at::Tensor& y) {
        return readers.scattered(
            read_heads(readers.gathered(y), memory, {.key_lengths = readers.lengths()}));
      });
}

at::Tensor LightLayerImpl::feed(const at::Tensor& x) {
  return feed_forward_sublayer(x, affine(linear1_), affine(linear2_), norm3_, options_.layer.order,
                               dropout());
}

at::Tensor LightLayerImpl::mix_weights(const at::Tensor& x, const at::Tensor& lengths) {
  const at::Tensor y = given(x, norm1_);
  const Attention attention{
      .structure = stack_ == Stack::kDecoder ? Structure(Causal{}) : Structure(Dense{}),
      .key_lengths = lengths};
  return std::visit(
      Overloaded{[&](Convolution& m) { return m->weights(y, lengths); },
                 [&](QuaternionMultiHead& m) { return m->weights(y, m->project(y), attention); }},
      self_);
}

at::Tensor LightLayerImpl::read_weights(const at::Tensor& x, const HeadsCache& memory,
                                        const at::Tensor& lengths) {
  const at::Tensor y = given(x, norm2_);
  const Attention attention{.key_lengths = lengths};
  return std::visit(
      Overloaded{[&](MultiHead& m) { return m->cached_weights(y, memory, attention).weights; },
                 [&](QuaternionMultiHead& m) { return m->weights(y, memory, attention); }},
      cross_);
}

at::Tensor LightLayerImpl::kernels(const at::Tensor& x, const at::Tensor& lengths) {
  const at::Tensor y = given(x, norm1_);
  return std::visit(Overloaded{[&](Convolution& m) { return m->kernels(y, lengths); },
                               [](QuaternionMultiHead&) { return at::Tensor(); }},
                    self_);
}

LightTransformerImpl::LightTransformerImpl(const LightTransformerOptions& options)
    : options_(options) {
  check_positive("encoder_layers", options.encoder_layers);
  check_positive("decoder_layers", options.decoder_layers);
  if (options.kernels.empty())
    throw InvalidArgument("kernels: none, expected a width for each layer");
  reset();
}

void LightTransformerImpl::reset() {
  const LightTransformerOptions& o = options_;
  const auto stack = [&](const char* name, Stack which, int64_t layers) {
    auto list = register_module(name, torch::nn::ModuleList());
    for (int64_t i = 0; i < layers; ++i) {
      const auto place = static_cast<size_t>(i);
      list->push_back(LightLayer(o, which, o.kernels[std::min(place, o.kernels.size() - 1)]));
    }
    return list;
  };
  encoder_ = stack("encoder", Stack::kEncoder, o.encoder_layers);
  decoder_ = stack("decoder", Stack::kDecoder, o.decoder_layers);
  if (!o.final_norm) return;
  encoder_norm_ = register_module("encoder_norm", norm_of(o.layer.width));
  decoder_norm_ = register_module("decoder_norm", norm_of(o.layer.width));
}

at::Tensor LightTransformerImpl::finished(const at::Tensor& x) {
  return decoder_norm_ ? decoder_norm_(x) : x;
}

at::Tensor LightTransformerImpl::encode(at::Tensor x, const at::Tensor& lengths) {
  for (int64_t i = 0; i < options_.encoder_layers; ++i) {
    LightLayerImpl& one = encoder_layer(i);
    x = one.feed(one.mix(x, lengths));
  }
  return encoder_norm_ ? encoder_norm_(x) : x;
}

at::Tensor LightTransformerImpl::decode(at::Tensor x, const at::Tensor& memory,
                                        const at::Tensor& lengths) {
  for (int64_t i = 0; i < options_.decoder_layers; ++i) {
    LightLayerImpl& one = decoder_layer(i);
    x = one.feed(one.read(one.mix(x, {}), one.project(memory), lengths));
  }
  return finished(x);
}

at::Tensor LightTransformerImpl::forward(const at::Tensor& source, const at::Tensor& target,
                                         const at::Tensor& source_lengths) {
  return decode(target, encode(source, source_lengths), source_lengths);
}

DecoderCache LightTransformerImpl::start(const at::Tensor& memory, const at::Tensor& lengths) {
  DecoderCache cache{.self = std::vector<StepCache>(static_cast<size_t>(options_.decoder_layers)),
                     .memory = {},
                     .readers = Readers(memory.size(0), lengths)};
  for (int64_t i = 0; i < options_.decoder_layers; ++i)
    cache.memory.push_back(decoder_layer(i).project(memory));
  return cache;
}

at::Tensor LightTransformerImpl::step(at::Tensor x, DecoderCache& cache) {
  for (int64_t i = 0; i < options_.decoder_layers; ++i) {
    LightLayerImpl& one = decoder_layer(i);
    const auto place = static_cast<size_t>(i);
    x = one.feed(
        one.read_step(one.mix_step(x, cache.self[place]), cache.memory[place], cache.readers));
  }
  return finished(x);
}

}  // namespace fovea::nn
