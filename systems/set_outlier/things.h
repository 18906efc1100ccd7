// Sets of things as people write them: "olive oil | garlic".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/item_sets.h"

namespace fovea::systems::set_outlier {

// Names for numbers.
std::vector<std::vector<std::string>> named(const data::ItemSets&);

// "salt|oil" as "salt, oil".
std::string shown_set(std::string_view line);
// "1st", "12th", "23rd".
std::string ordinal(int64_t rank);

}  // namespace fovea::systems::set_outlier
