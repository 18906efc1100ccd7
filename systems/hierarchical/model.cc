#include "systems/hierarchical/model.h"

#include <ATen/ATen.h>

#include "data/packed.h"
#include "text/recurrent.h"

namespace fovea::systems {

AttentiveEncoderImpl::AttentiveEncoderImpl(const Config& config) : config_(config) {
  encoder_ = register_module(
      "encoder", nn::Recurrent(nn::RecurrentOptions{.input = config.input, .width = config.width}));
  project_ = register_module("project", torch::nn::Linear(2 * config.width, config.context));
  context_ = register_parameter("context", at::randn({config.context}) * 0.1);
}

AttentiveEncoderImpl::Encoded AttentiveEncoderImpl::forward(const at::Tensor& x,
                                                            const at::Tensor& offsets,
                                                            text::Want want) {
  const at::Tensor h = text::walk(encoder_, x, offsets).states.unsqueeze(1);  // [total, 1, 2 width]
  const at::Tensor u = at::tanh(project_(h));
  const int64_t sequences = offsets.size(0) - 1;
  const at::Tensor query = context_.expand({sequences, 1, config_.context});
  const Choices choices{.score = Dot{1.0},
                        .normaliser = config_.normaliser,
                        .structure = Ragged{data::one_each(sequences, x.device()), offsets}};
  Encoded out{attend(query, u, h, choices).squeeze(1), {}};
  if (want == text::Want::kLook) out.weights = text::packed_weights(query, u, choices, offsets)[0];
  return out;
}

HierarchicalModel::HierarchicalModel(const Config& config) : config_(config) {
  embedding = register_module("embedding", text::Embedding(config.embedding));
  const auto level = [&](int64_t input) {
    return AttentiveEncoder(AttentiveEncoderImpl::Config{.input = input,
                                                         .width = config.width,
                                                         .context = config.context,
                                                         .normaliser = config.normaliser});
  };
  words_ = register_module("words", level(config.embedding.width));
  sentences_ = register_module("sentences", level(2 * config.width));
  output_ = register_module("output", torch::nn::Linear(2 * config.width, config.classes));
}

text::Answer HierarchicalModel::answer(const text::Batch& batch, text::Want want) {
  const auto sentence = words_(embedding(batch.words), batch.sentences, want);
  // A sentence without words is left out of the second level, and its weight there is 0.
  const at::Tensor lengths = batch.sentences.diff();
  const at::Tensor present = (lengths > 0).nonzero().squeeze(1);
  const at::Tensor before = at::constant_pad_nd((lengths > 0).cumsum(0, at::kInt), {1, 0});
  const at::Tensor documents = before.index_select(0, batch.documents.to(at::kLong)).to(at::kInt);
  const at::Tensor kept = sentence.mixed.index_select(0, present);
  const auto document =
      sentences_(at::dropout(kept, config_.dropout, is_training()), documents, want);

  text::Answer out;
  out.logits = output_(at::dropout(document.mixed, config_.dropout, is_training()));
  if (want == text::Want::kLook) {
    out.look = {
        .words = sentence.weights.unsqueeze(0),
        .sentences =
            at::zeros({lengths.size(0)}, kept.options()).index_copy(0, present, document.weights),
        .heads = {"u_w"},
        .score = "dot u·tanh(W h + b)",
        .normaliser = config_.normaliser_name + ", at both levels",
        .structure = "words in a sentence, sentences in a document",
        .scale = "1"};
  }
  return out;
}

}  // namespace fovea::systems
