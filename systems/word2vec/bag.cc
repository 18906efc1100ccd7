#include "systems/word2vec/bag.h"

#include <ATen/ATen.h>

#include "data/packed.h"
#include "text/recurrent.h"

namespace fovea::systems::word2vec {

BagModel::BagModel(const text::EmbeddingOptions& words, int64_t classes) {
  text::EmbeddingOptions table = words;
  table.width = classes;
  table.deviation = 0.01;
  embedding = register_module("embedding", text::Embedding(table));
  idf_ = register_buffer("idf", at::ones({words.words}));
  bias_ = register_parameter("bias", at::zeros({classes}));
}

namespace {

// What each word adds to each class, [total, classes], summed within its document.
text::Answer summed(const text::Batch& batch, const at::Tensor& added, const at::Tensor& bias,
                    text::Want want) {
  const at::Tensor bounds = batch.bounds();
  const at::Tensor blank = at::zeros({batch.items(), 1, 1}, added.options()),
                   none = at::zeros({added.size(0), 1, 1}, added.options());
  const Choices choices{.score = Constant{},
                        .normaliser = Unnormalised{},
                        .structure = Ragged{data::one_each(batch.items(), added.device()), bounds}};
  text::Answer out;
  out.logits = attend(blank, none, added.unsqueeze(1), choices).squeeze(1) + bias;
  if (want == text::Want::kLook) {
    // What a word adds to the chosen class, minus the mean over the other classes.
    const at::Tensor won =
        out.logits.argmax(1).index_select(0, data::owners(bounds).to(added.device())).unsqueeze(1);
    out.look = {.words = (added.gather(1, won).squeeze(1) - added.mean(1)).unsqueeze(0),
                .sentences = {},
                .heads = {"contribution"},
                .score = "constant",
                .normaliser = "none",
                .structure = "sentence",
                .scale = "1; shown: what the word adds to the answer"};
  }
  return out;
}

}  // namespace

text::Answer BagModel::answer(const text::Batch& batch, text::Want want) {
  return summed(batch, embedding(batch.words) * idf_.index_select(0, batch.words).unsqueeze(1),
                bias_, want);
}

GruBagModel::GruBagModel(const text::EmbeddingOptions& words, int64_t classes) {
  embedding = register_module("embedding", text::Embedding(words));
  gru_ = register_module("gru", nn::Recurrent(nn::RecurrentOptions{.cell = nn::Cell::kGru,
                                                                   .input = words.width,
                                                                   .width = words.width,
                                                                   .bidirectional = false}));
  out_ = register_module("out", torch::nn::Linear(words.width, classes));
}

text::Answer GruBagModel::answer(const text::Batch& batch, text::Want want) {
  const at::Tensor states = text::walk(gru_, embedding(batch.words), batch.bounds()).states;
  return summed(batch, states.matmul(out_->weight.t()), out_->bias, want);
}

}  // namespace fovea::systems::word2vec
