// The picture of document-attention beside those of every text system: one sentence, two aspects.
#pragma once

#include <vector>

#include "explain/explanation.h"

namespace fovea::text {
class TextTask;
}

namespace fovea::systems::document_attention {

std::vector<explain::Explanation> pictures(text::TextTask& task);

}  // namespace fovea::systems::document_attention
