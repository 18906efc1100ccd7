// Sizes that a user gives to a module.
#pragma once

#include <cstdint>
#include <string>

#include "fovea/error.h"

namespace fovea::nn {

inline void check_positive(const char* name, int64_t value) {
  if (value < 1)
    throw InvalidArgument(std::string(name) + ": " + std::to_string(value) +
                          ", expected at least 1");
}

}  // namespace fovea::nn
