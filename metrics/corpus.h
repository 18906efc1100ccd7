// Checks shared by the corpus metrics.
#pragma once

#include <string>
#include <vector>

#include "fovea/error.h"

namespace fovea::metrics {

inline void check_parallel(const std::vector<std::string>& hypotheses,
                           const std::vector<std::vector<std::string>>& references) {
  if (references.empty()) throw InvalidArgument("reference: none given, expected at least one");
  if (hypotheses.empty()) throw InvalidArgument("hypothesis: no lines, expected at least one");
  for (const auto& reference : references) {
    if (reference.size() != hypotheses.size()) {
      throw InvalidArgument("reference: " + std::to_string(reference.size()) + " lines, expected " +
                            std::to_string(hypotheses.size()) + " (the hypothesis's)");
    }
  }
}

// The references of sentence i.
inline std::vector<std::string_view> references_of(
    const std::vector<std::vector<std::string>>& references, size_t i) {
  std::vector<std::string_view> out;
  for (const auto& reference : references) out.emplace_back(reference[i]);
  return out;
}

}  // namespace fovea::metrics
