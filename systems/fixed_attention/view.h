// The pictures of fixed-attention beside those of every text system: negation, the learned queries.
#pragma once

#include <vector>

#include "explain/explanation.h"

namespace fovea::text {
class TextTask;
}

namespace fovea::systems::fixed_attention {

std::vector<explain::Explanation> pictures(text::TextTask& task);

}  // namespace fovea::systems::fixed_attention
