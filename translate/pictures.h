// What the translation systems show: attention between words, and the beam.
#pragma once

#include "explain/explanation.h"
#include "translate/corpus.h"
#include "translate/model.h"

namespace fovea::translate {

struct PictureContext {
  std::string system;
  const Codec& source;
  const Codec& target;
};

// Rows and columns are tokens, EOS included; the truth of `pair` is drawn where its links are
// known.
explain::Explanation attention_picture(const PictureContext&, const AttentionMaps&, const Tokens&,
                                       const Pair&);
explain::Explanation beam_picture(const PictureContext&, const nn::SearchResult&,
                                  const std::string& said);

}  // namespace fovea::translate
