// The device texts as the library carries them.
#pragma once

#include <vector>

namespace fovea::cuda {

struct EmbeddedText {
  const char* name;  // as texts include it
  const char* text;
};
const std::vector<EmbeddedText>& embedded_texts();

}  // namespace fovea::cuda
