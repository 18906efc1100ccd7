// Values that an option may have, each under its name on the command line.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/error.h"

namespace fovea {

template <class Value, size_t n>
struct Named {
  std::pair<const char*, Value> all[n];

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, value] : all) out.emplace_back(name);
    return out;
  }
  Value of(std::string_view name) const {
    std::string expected;
    for (const auto& [known, value] : all) {
      if (name == known) return value;
      expected += (expected.empty() ? "" : ", ") + std::string(known);
    }
    throw InvalidArgument("'" + std::string(name) + "', expected one of " + expected);
  }
  const char* name_of(Value value) const {
    for (const auto& [name, known] : all)
      if (known == value) return name;
    throw InvalidArgument("value " + std::to_string(static_cast<int>(value)) +
                          ", which has no name");
  }
};

}  // namespace fovea
