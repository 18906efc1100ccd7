// j <= i and (floor(j / stride) = floor(i / stride) or j mod stride >= stride - summary).
// number: stride, summary.
#pragma once

#include "torch/cuda/texts/structures/causal.h"

namespace fovea::cuda {

struct Fixed : Causal {
  static constexpr bool kBand = false, kExact = false;
  static Cover cover(const Part&, const Span& s) {
    return s.key > s.i + s.rows - 1 ? Cover::kNone : Cover::kSome;
  }
  static bool allows(const Part& part, const Place& p) {
    const Whole stride = part.number[0], summary = part.number[1];
    return p.j <= p.i && (p.j / stride == p.i / stride || p.j % stride >= stride - summary);
  }
};

}  // namespace fovea::cuda
