// Facts about choices that the engine, libtorch's operators and the table of cases share. `Array` is
// a view or a tensor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>

#include "fovea/choices.h"
#include "fovea/error.h"

namespace fovea::engine {

// The factor of a dot product: 1 / sqrt(width) unless the choice gives another.
template <class Array>
double dot_scale(const choice::Dot<Array>& dot, int64_t width) {
  return dot.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, width))));
}

// Whether a causal structure puts the last query at the position of the last key.
template <class Array>
bool has_bottom_right(const choice::Structure<Array>& structure) {
  bool found = false;
  choice::each_kind(structure, [&]<class Kind>(const Kind& kind) {
    if constexpr (std::is_same_v<Kind, choice::Causal<Array>>)
      found = found || kind.alignment == choice::Alignment::kBottomRight;
  });
  return found;
}

// Normalisers that have a log-sum-exp (Hard: the log-probability of its choice).
template <class Array>
bool has_lse(const choice::Normaliser<Array>& normaliser) {
  return std::holds_alternative<choice::Softmax<Array>>(normaliser) ||
         std::holds_alternative<choice::TopK<Array>>(normaliser) ||
         std::holds_alternative<choice::Hard<Array>>(normaliser);
}
// Throws Unsupported for a normaliser that has none.
template <class Array>
void check_lse(const choice::Normaliser<Array>& normaliser) {
  if (!has_lse<Array>(normaliser))
    throw Unsupported("lse: the normaliser has no log-sum-exp; softmax, top_k and hard have");
}

}  // namespace fovea::engine
