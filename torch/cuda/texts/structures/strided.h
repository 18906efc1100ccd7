// j <= i and (i - j <= stride or (i - j) mod stride = 0). number: stride.
#pragma once

#include "torch/cuda/texts/structures/causal.h"

namespace fovea::cuda {

struct Strided : Causal {
  static constexpr bool kBand = false, kExact = false;
  static Cover cover(const Part& part, const Span& s) {
    const Whole stride = part.number[0], last_key = s.key + s.keys - 1;
    const Whole furthest = s.i + s.rows - 1 - s.key, nearest = s.i - last_key;
    if (furthest < 0) return Cover::kNone;
    if (nearest >= 0 && furthest <= stride) return Cover::kAll;
    if (nearest <= stride) return Cover::kSome;
    // No multiple of the stride between the nearest and the furthest distance.
    return furthest / stride * stride < nearest ? Cover::kNone : Cover::kSome;
  }
  static bool allows(const Part& part, const Place& p) {
    const Whole stride = part.number[0], distance = p.i - p.j;
    return distance >= 0 && (distance <= stride || distance % stride == 0);
  }
};

}  // namespace fovea::cuda
