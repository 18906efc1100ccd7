// A structure as the device texts have it.
#pragma once

#include <string>
#include <vector>

#include "torch/call.h"

namespace fovea::cuda {

struct StructureText {
  std::string type;  // All<Causal, AnyOf<All<Window>, All<First>>>
  std::string name;  // for messages: "causal & (window | first)"; empty if all is seen
  std::vector<std::string> texts;  // of structures/, which it needs
};

// Packed sequences and pages are layouts, a graph is a driver: they are no part of it.
StructureText text_of(const Structure& structure);

}  // namespace fovea::cuda
