// What every module of nn/ shares with libtorch's own: called by its name, in a Sequential, cloned.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fovea/nn/mixture_of_experts.h"
#include "fovea/nn/recurrent.h"
#include "fovea/nn/squeeze_excite.h"
#include "fovea/nn/transformer.h"

namespace fovea::nn {
namespace {

const LayerOptions kLayer{
    .width = 12, .heads = 3, .hidden = 20, .dropout = 0, .attention_dropout = 0};

TEST(MultiHead, CalledWithOneTensorAttendsToItself) {
  torch::manual_seed(1);
  MultiHead module(MultiHeadOptions{.width = 12, .heads = 3});
  const at::Tensor x = torch::randn({2, 5, 12}), y = torch::randn({2, 4, 12});
  EXPECT_TRUE(at::equal(module(x), module(x, x, x)));
  EXPECT_TRUE(at::equal(module(x, y), module(x, y, y)));
  const Attention causal{.structure = Causal{}};
  EXPECT_TRUE(at::equal(module->self_attention(x, causal), module(x, x, x, causal)));
  EXPECT_FALSE(at::allclose(module(x), module(x, x, x, causal)));
}

TEST(MultiHead, RefusesAValueWithoutAKey) {
  MultiHead module(MultiHeadOptions{.width = 12, .heads = 3});
  const at::Tensor x = torch::randn({2, 5, 12});
  EXPECT_THROW(module(x, at::Tensor(), x), InvalidArgument);
}

TEST(Modules, ServeInASequential) {
  torch::manual_seed(2);
  MultiHead attention(MultiHeadOptions{.width = 12, .heads = 3});
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({12}));
  EncoderLayer layer(kLayer);
  Encoder encoder(kLayer, 2, true);
  MixtureOfExperts experts(MixtureOfExpertsOptions{.width = 12, .noise = false});
  SqueezeExcite gates(SqueezeExciteOptions{.channels = 5});
  torch::nn::Sequential all(attention, norm, layer, encoder, experts, gates);
  const at::Tensor x = torch::randn({2, 5, 12});
  const at::Tensor expected =
      gates(experts(encoder->forward(layer->forward(norm(attention->forward(x))))));
  EXPECT_TRUE(at::equal(all->forward(x), expected));

  Transformer transformer(
      TransformerOptions{.layer = kLayer, .encoder_layers = 1, .decoder_layers = 1});
  torch::nn::Sequential first(transformer, norm);
  EXPECT_TRUE(at::equal(first->forward(x, x), norm(transformer->forward(x, x))));
}

// A clone answers as its original, and learns on its own.
template <class Impl, class Answer>
void check_clone(const std::shared_ptr<Impl>& original, Answer answer) {
  original->eval();
  const auto copy = std::dynamic_pointer_cast<Impl>(original->clone());
  ASSERT_TRUE(copy);
  EXPECT_FALSE(copy->is_training());
  const at::Tensor before = answer(*original);
  EXPECT_TRUE(at::equal(answer(*copy), before));
  ASSERT_EQ(copy->named_parameters().size(), original->named_parameters().size());
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& p : copy->parameters()) p.mul_(1.5).add_(0.1);
  }
  EXPECT_TRUE(at::equal(answer(*original), before));
  EXPECT_FALSE(at::allclose(answer(*copy), before));
}

TEST(Modules, CloneIntoModulesOfTheirOwn) {
  torch::manual_seed(3);
  const at::Tensor x = torch::randn({2, 5, 12}), lengths = torch::tensor({5, 3});
  const Attention dense;
  check_clone(MultiHead(MultiHeadOptions{.width = 12, .heads = 3}).ptr(),
              [&](MultiHeadImpl& m) { return m.forward(x); });
  check_clone(
      MultiHead(MultiHeadOptions{.width = 12, .heads = 2, .bias = false, .key_width = 7}).ptr(),
      [&](MultiHeadImpl& m) { return m.forward(x, x.narrow(-1, 0, 7), x); });
  check_clone(EncoderLayer(kLayer).ptr(), [&](EncoderLayerImpl& m) { return m.forward(x); });
  check_clone(DecoderLayer(kLayer).ptr(),
              [&](DecoderLayerImpl& m) { return m.forward(x, x, dense, dense); });
  check_clone(Encoder(kLayer, 2, true).ptr(), [&](EncoderImpl& m) { return m.forward(x); });
  check_clone(Decoder(kLayer, 2, false).ptr(),
              [&](DecoderImpl& m) { return m.forward(x, x, dense, dense); });
  check_clone(
      Transformer(TransformerOptions{.layer = kLayer, .encoder_layers = 1, .decoder_layers = 2})
          .ptr(),
      [&](TransformerImpl& m) { return m.forward(x, x, lengths.to(at::kInt)); });
  for (const Cell cell : {Cell::kGru, Cell::kLstm})
    check_clone(
        Recurrent(RecurrentOptions{.cell = cell, .input = 12, .width = 4, .layers = 2}).ptr(),
        [&](RecurrentImpl& m) { return m.forward(x, lengths).states; });
  check_clone(SqueezeExcite(SqueezeExciteOptions{.channels = 5, .reduction = 2}).ptr(),
              [&](SqueezeExciteImpl& m) { return m.forward(x); });
  check_clone(MixtureOfExperts(
                  MixtureOfExpertsOptions{.width = 12, .hidden = 4, .experts = 3, .noise = false})
                  .ptr(),
              [&](MixtureOfExpertsImpl& m) { return m.forward(x); });
}

}  // namespace
}  // namespace fovea::nn
