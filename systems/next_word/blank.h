// Whether the blank at the end of a sentence looks at the word that decides what fills it.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "fovea/nn/language_model.h"
#include "systems/next_word/documents.h"
#include "systems/next_word/sentences.h"
#include "systems/next_word/tokens.h"
#include "train/types.h"

namespace fovea::systems::next_word {

class Blank {
 public:
  // `seed`: of the sentences by which a head is chosen.
  Blank(nn::LanguageModel model, const Tokens& tokens, uint64_t seed)
      : model_(std::move(model)), tokens_(tokens), seed_(seed) {}

  // hit_rate over the first sentences of the split whose deciding word is known; none: no figure.
  void judge_attention(const Documents& documents, Split split, Evaluation& out);

 private:
  struct Place {
    int64_t layer = 0, head = 0;
  };
  // Of a sentence without its last word: [layers, heads, words] of the blank.
  torch::Tensor weights(const Sentence& sentence);
  Place looking_head();

  nn::LanguageModel model_;
  const Tokens& tokens_;
  const uint64_t seed_;
};

}  // namespace fovea::systems::next_word
