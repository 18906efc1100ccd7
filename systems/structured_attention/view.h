// Pictures of spans, besides those of every text system: the same scores under other ways of
// weighing.
#pragma once

#include <vector>

#include "explain/explanation.h"

namespace fovea::text {
class TextTask;
}

namespace fovea::systems::structured_attention {

std::vector<explain::Explanation> span_pictures(text::TextTask& task);

}  // namespace fovea::systems::structured_attention
