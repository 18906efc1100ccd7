// Which combinations have no meaning, each with its reason. One list, for the check, the tests and
// the documentation.
#pragma once

#include <span>
#include <string>

#include "fovea/engine.h"

namespace fovea::engine {

struct Refusal {
  const char* what;    // "silverman kernel with softmax"
  const char* reason;  // a sentence
  bool (*applies)(const Problem& problem);
};

std::span<const Refusal> refusals();
// Throws Unsupported with every reason that applies.
void check_meaning(const Problem& problem);

}  // namespace fovea::engine
