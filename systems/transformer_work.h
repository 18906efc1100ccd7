// The step_work of a system of Transformer layers.
#pragma once

#include "systems/system.h"

namespace fovea::systems {

// With the options `batch`, `width` and `hidden`; a generated item has about so many tokens.
inline auto transformer_work(int64_t tokens) {
  return [tokens](const OptionValues& o, const std::string& data) {
    return data.empty() ? static_cast<double>(tokens * o.integer("batch") * o.integer("width") *
                                              o.integer("hidden"))
                        : kLargeStep;
  };
}

}  // namespace fovea::systems
