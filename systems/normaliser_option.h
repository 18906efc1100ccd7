// A normaliser chosen by name on the command line.
#pragma once

#include "fovea/attend.h"
#include "train/settings.h"

namespace fovea::systems {

inline Option normaliser_option() {
  return Option("normaliser", "softmax", "what turns scores to weights")
      .among({"softmax", "sparsemax", "entmax"});
}
inline Normaliser normaliser_named(const std::string& name) {
  if (name == "sparsemax") return Sparsemax{};
  if (name == "entmax") return Entmax{};
  return Softmax{};
}

}  // namespace fovea::systems
