// From soft attention over tokens to word alignments.
#pragma once

#include <ATen/core/Tensor.h>

#include "metrics/alignment.h"
#include "translate/batch.h"

namespace fovea::translate {

// Weights [T, S] of one pair, rows for the target's tokens and columns for the source's (EOS and
// padding may follow; they are left out before anything is compared), as weights between words:
// summed over a word's source pieces, averaged over its target pieces.
at::Tensor word_weights(const at::Tensor& weights, const Tokens& tokens);

// For each target word the source word it looks at most; ties go to the first. No source words: no
// links.
metrics::Links best_links(const at::Tensor& word_weights);

// The same for weights whose rows sum to less than one because the rest went to no word: a target
// word is linked if its best source word has more weight than that rest.
metrics::Links likely_links(const at::Tensor& word_weights);

// How often the best source word is one the truth allows, over target words that have a true link.
struct HitRate {
  int64_t hits = 0, asked = 0;
  void add(const metrics::Links& links, const metrics::GoldLinks& truth);
  double rate() const {
    return asked > 0 ? static_cast<double>(hits) / static_cast<double>(asked) : 0;
  }
};

}  // namespace fovea::translate
