#include "systems/set_outlier/things.h"

#include <fmt/format.h>

namespace fovea::systems::set_outlier {

std::vector<std::vector<std::string>> named(const data::ItemSets& sets) {
  std::vector<std::vector<std::string>> out;
  for (const auto& set : sets.sets) {
    auto& one = out.emplace_back();
    for (const int64_t thing : set) one.push_back(sets.names[static_cast<size_t>(thing)]);
  }
  return out;
}

std::string shown_set(std::string_view line) {
  std::string out;
  for (const char c : line) {
    if (c == '|') {
      while (out.ends_with(' ')) out.pop_back();
      out += ", ";
    } else if (c != ' ' || !out.ends_with(' ')) {
      out += c;
    }
  }
  return out;
}

std::string ordinal(int64_t rank) {
  const int64_t last = rank % 10;
  const bool teen = rank / 10 % 10 == 1;
  return fmt::format("{}{}", rank,
                     teen        ? "th"
                     : last == 1 ? "st"
                     : last == 2 ? "nd"
                     : last == 3 ? "rd"
                                 : "th");
}

}  // namespace fovea::systems::set_outlier
