// The pictures of word-sum, besides those of every text system: a pair that it gets wrong, the
// polarity axis.
#pragma once

#include <vector>

#include "explain/explanation.h"

namespace fovea::text {
class TextTask;
}

namespace fovea::systems::word_sum {

std::vector<explain::Explanation> pictures(text::TextTask& task);

}  // namespace fovea::systems::word_sum
