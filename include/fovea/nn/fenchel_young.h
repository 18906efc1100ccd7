// Fenchel–Young losses (Blondel, Martins & Niculae 2020): the loss that goes with a normaliser, as
// cross-entropy goes with softmax. The sparsemax loss (Martins & Astudillo 2016) and the entmax loss
// (Peters, Niculae & Martins 2019) are exactly 0, with a gradient of 0, once the right class leads by
// enough.
//
//   auto loss = fovea::nn::fenchel_young_loss(scores, classes, fovea::Entmax{1.5}).mean();
#pragma once

#include "fovea/attend.h"

namespace fovea::nn {

// L(e; y) = (p - y)'e + H(p) - H(y),  p = normalise(e),  gradient p - y, where H is the entropy that the
// normaliser maximises with p'e: H(p) = (1 - sum_j p_j^alpha) / (alpha (alpha - 1)), of sparsemax with
// alpha = 2, of softmax Shannon's.
//
// scores [..., classes]; target: int64 [...], or distributions [..., classes] of the scores' type.
// Softmax, Sparsemax or Entmax with a number for alpha. A score of minus infinity is a class that is not
// there. One loss for each row, [...], with derivatives of any order in the scores.
at::Tensor fenchel_young_loss(const at::Tensor& scores, const at::Tensor& target,
                              const Normaliser& normaliser = Sparsemax{});

}  // namespace fovea::nn
