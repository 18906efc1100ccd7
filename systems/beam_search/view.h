// The way of greedy search in the tree of a beam; what a wider beam does to BLEU, length and
// log-probability.
#pragma once

#include <vector>

#include "explain/explanation.h"
#include "fovea/nn/beam_search.h"
#include "translate/codec.h"

namespace fovea::systems::beam_search {

// What a search found, over a set of sentences.
struct Found {
  double bleu = 0, length_ratio = 0, log_probability = 0;
};
// The same for several widths of the beam, at one exponent of the length normalisation.
struct ByWidth {
  double alpha = 0;
  std::vector<double> widths = {};
  std::vector<Found> found = {};
};
// `picture` is of `found`. Marks where greedy search leaves the way to the best; what the beam did
// not follow is added. Both searches kept their trees.
explain::Explanation with_greedy(explain::Explanation picture, const nn::SearchResult& found,
                                 const nn::SearchResult& greedy, const translate::Codec& target);
explain::Explanation width_curves(const std::vector<ByWidth>& all, size_t sentences);

}  // namespace fovea::systems::beam_search
