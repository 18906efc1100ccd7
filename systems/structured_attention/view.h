// The pictures of spans beside those of every text system: what other weighings make of the same
// scores.
#pragma once

#include <vector>

#include "explain/explanation.h"

namespace fovea::text {
class TextTask;
}

namespace fovea::systems::structured_attention {

std::vector<explain::Explanation> span_pictures(text::TextTask& task);

}  // namespace fovea::systems::structured_attention
