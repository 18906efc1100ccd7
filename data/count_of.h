// Counts in messages.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace fovea::data {

// "1 class", "2 classes", "0 numbers z": how many there are, and of what.
inline std::string count_of(auto n, std::string_view thing, std::string_view more = "") {
  const std::string_view ending = n == 1 ? "" : thing.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}{}", n, thing, ending, more);
}

}  // namespace fovea::data
