// Pictures of word alignment: the weights as a matrix with the gold links, and the chosen links as
// lines between words.
#pragma once

#include <ATen/core/Tensor.h>

#include "explain/explanation.h"
#include "translate/corpus/corpus.h"

namespace fovea::systems {

struct AlignedPair {
  const translate::Pair& pair;
  const at::Tensor& weights;  // [target words, source words]
  const metrics::Links& links;
  const std::string &method, &symmetrise;
  bool drawn_by_people;  // the true links; those of generated sentences are known
};
std::vector<explain::Explanation> alignment_pictures(const AlignedPair&);

}  // namespace fovea::systems
