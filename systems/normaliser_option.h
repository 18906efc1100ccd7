// A normaliser chosen by name on the command line: the names of `fovea attend --normaliser`, and "none".
#pragma once

#include <string>
#include <vector>

#include "fovea/attend.h"
#include "torch/spec.h"
#include "train/option_values.h"

namespace fovea::systems {

// Softmax, sparsemax and entmax, and further ones that this system offers.
inline Option normaliser_option(const std::vector<std::string>& besides = {},
                                const char* help = "how scores become weights") {
  std::vector<std::string> names = {"softmax", "sparsemax", "entmax"};
  names.insert(names.end(), besides.begin(), besides.end());
  return Option("normaliser", "softmax", help).among(names);
}

inline Normaliser normaliser_named(const std::string& name) {
  if (name == "none") return Unnormalised{};
  return parse_normaliser(name, [](std::string_view field, std::string_view) -> at::Tensor {
    throw InvalidArgument(std::string(field) + ": expected no array");
  });
}

}  // namespace fovea::systems
