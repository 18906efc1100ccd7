#include "systems/word_sum/model.h"

#include <ATen/ATen.h>

#include "data/packed.h"

namespace fovea::systems {

WordSumModel::WordSumModel(const Config& config) : config_(config) {
  embedding = register_module("embedding", text::Embedding(config.embedding));
  const int64_t outputs = config.classes == 2 ? 1 : config.classes;
  weight = register_parameter("weight", at::randn({outputs, config.embedding.width}) * 0.1);
  bias = register_parameter("bias", at::zeros({outputs}));
}

text::Answer WordSumModel::answer(const text::Batch& batch, text::Want want) {
  const at::Tensor x = embedding(batch.words);  // [total, width]
  const at::Tensor bounds = batch.bounds();
  const at::Tensor blank = at::zeros({batch.items(), 1, x.size(1)}, x.options());
  const Choices choices{.score = Constant{},
                        .normaliser = config_.pooling,
                        .structure = Ragged{data::one_each(batch.items(), x.device()), bounds}};
  const at::Tensor sum =
      attend(blank, x.unsqueeze(1), x.unsqueeze(1), choices).squeeze(1);  // [documents, width]
  const at::Tensor z = polarity(sum) + bias;
  text::Answer out;
  out.logits = config_.classes == 2 ? at::cat({at::zeros_like(z), z}, 1) : z;
  if (want == text::Want::kLook) {
    // What a word adds to the answer: its weight times its polarity, for the chosen class (of two
    // classes, the second).
    const at::Tensor owner = data::owners(bounds).to(x.device());
    const at::Tensor share = text::packed_weights(blank, x.unsqueeze(1), choices, bounds)[0];
    const at::Tensor chosen = z.argmax(1).index_select(0, owner).unsqueeze(1);
    out.look = {.words = (polarity(x).gather(1, chosen).squeeze(1) * share).unsqueeze(0),
                .sentences = {},
                .heads = {"contribution"},
                .score = "constant",
                .normaliser = std::holds_alternative<Uniform>(config_.pooling) ? "uniform" : "none",
                .structure = "sentence",
                .scale = "1; shown: weight × polarity wᵀx"};
  }
  return out;
}

}  // namespace fovea::systems
