#include "systems/alignment/aligner.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "systems/bahdanau/model.h"
#include "systems/luong/model.h"
#include "systems/transformer/model.h"

namespace fovea::systems {
namespace {

// Forced decoding: the attention of a translation model while it is given the right translation.
class Forced : public Aligner {
 public:
  explicit Forced(std::shared_ptr<translate::Model> model)
      : model_(register_module("model", std::move(model))) {}
  at::Tensor loss(const translate::Batch& batch, double label_smoothing) override {
    return translate::token_loss(model_->logits(batch), batch, is_training() ? label_smoothing : 0)
        .smoothed;
  }
  at::Tensor weights(const translate::Batch& batch) override { return model_->alignment(batch); }

 private:
  std::shared_ptr<translate::Model> model_;
};

// Word t of T is aligned with word ⌊(t + ½) S / T⌋ of S. This uses no word of the text.
class Diagonal : public Aligner {
 public:
  at::Tensor weights(const translate::Batch& batch) override {
    at::Tensor out =
        at::zeros({batch.source.size(0), batch.target_out.size(1), batch.source.size(1)});
    const at::Tensor real = batch.target_out.ne(translate::kPad)
                                .logical_and(batch.target_out.ne(translate::kEnd))
                                .sum(1)
                                .cpu();
    for (int64_t b = 0; b < out.size(0); ++b) {
      const int64_t sources = batch.source_lengths[b].item<int64_t>() - 1,
                    targets = real[b].item<int64_t>();
      for (int64_t t = 0; t < targets && sources > 0; ++t)
        out[b][t][(2 * t + 1) * sources / (2 * targets)] = 1;
    }
    return out;
  }
};

}  // namespace

std::shared_ptr<Aligner> make_aligner(const std::string& method, const OptionValues& o,
                                      const translate::Vocabularies& vocabularies) {
  for (const char* name : {"align_layer", "align_head"})
    if (method != "transformer" && o.integer(name) != -1)
      throw UsageError(fmt::format("--set {}={}: of method=transformer, not of method={}", name,
                                   o.integer(name), method));
  const int64_t width = o.integer("width");
  const double dropout = o.number("dropout");
  if (method == "neural") return make_neural(o, vocabularies);
  if (method == "ibm1") return make_ibm1(vocabularies);
  if (method == "diagonal") return std::make_shared<Diagonal>();
  if (method == "luong") {
    return std::make_shared<Forced>(std::make_shared<LuongModel>(
        LuongConfig{
            .embedding = width, .width = width, .dropout = dropout, .score = LuongScore::kDot},
        vocabularies));
  }
  if (method == "transformer") {
    TransformerConfig config;
    config.stacks.layer = {.width = width, .heads = 4, .hidden = 2 * width, .dropout = dropout};
    config.stacks.encoder_layers = config.stacks.decoder_layers = 2;
    config.ends = {.width = width,
                   .embedding_dropout = dropout,
                   .aligned = {.layer = o.integer("align_layer"), .head = o.integer("align_head")}};
    return std::make_shared<Forced>(std::make_shared<TransformerModel>(config, vocabularies));
  }
  return std::make_shared<Forced>(std::make_shared<BahdanauModel>(
      BahdanauConfig{.embedding = width, .width = width, .alignment = width, .dropout = dropout},
      vocabularies));
}

}  // namespace fovea::systems
