#include "data/files/json.h"

#include <fmt/format.h>

#include "data/files/file.h"

namespace fovea::data {

bool json_is_shallow(std::string_view text) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\')
        ++at;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return false;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return true;
}

void refuse_json(std::string_view text, const std::string& path, size_t byte) {
  throw FileError(
      path, 0,
      json_is_shallow(text)
          ? fmt::format("not JSON (byte {})", byte)
          : fmt::format("JSON nested deeper than {} levels, expected less", kDeepestJson));
}

void refuse_number(const std::string& path) {
  throw FileError(path, 0, "not JSON: a number too large, expected at most 1.8e308");
}

}  // namespace fovea::data
