// The pictures of word-sum, besides those of every text system: a pair that it gets wrong, the
// words along and across w, the polarity axis.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "explain/explanation.h"

namespace fovea::text {
class TextTask;
}

namespace fovea::systems::word_sum {

// Words [n, width] against w [width]: how far each lies along it, and where across it, in the
// direction in which they differ most.
struct Places {
  at::Tensor along, across;  // [n]
};
Places places_along(const at::Tensor& words, const at::Tensor& w);

std::vector<explain::Explanation> pictures(text::TextTask& task);

}  // namespace fovea::systems::word_sum
