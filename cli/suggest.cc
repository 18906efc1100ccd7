#include "cli/suggest.h"

#include "data/nearest.h"

namespace fovea::cli {

std::string unknown(std::string_view kind, std::string_view typed,
                    const std::vector<std::string>& names) {
  std::string message = "unknown " + std::string(kind) + " '" + std::string(typed) + "'";
  if (const std::string near = data::nearest(typed, names); !near.empty()) {
    return message + ": did you mean '" + near + "'?";
  }
  message += "; there are";
  for (size_t i = 0; i < names.size(); ++i) message += (i == 0 ? " " : ", ") + names[i];
  return message;
}

}  // namespace fovea::cli
