// What the translation systems show: attention between words, and the beam.
#pragma once

#include "explain/explanation.h"
#include "translate/corpus/corpus.h"
#include "translate/model.h"

namespace fovea::translate {

// The title of the picture that compares translations by length: by it another run's is found.
inline constexpr const char* kLengthTitle = "Score against the length of the source";

struct PictureContext {
  std::string system;
  const Codec& source;
  const Codec& target;
};

// What was said, and where the right answer is known, whether it is right.
std::string outcome_of(const std::string& said, const Pair& asked);

// Rows and columns are tokens, EOS included; the truth of `pair` is drawn where its links are
// known. The layer and head shown first are those with most weight on the truth; without one, those
// that are surest of where they look.
explain::Explanation attention_picture(const PictureContext&, const AttentionMaps&, const Tokens&,
                                       const Pair&);
// One step of the decoder, number by number, for each output token: score, distribution, sum,
// concatenation, word. `attention` is the picture of the same pair's weights, whose labels it takes.
explain::Explanation step_picture(const PictureContext&, const DecodingSteps&,
                                  explain::Explanation attention);
explain::Explanation beam_picture(const PictureContext&, const nn::SearchResult&,
                                  const std::string& outcome);

}  // namespace fovea::translate
