#pragma once

#include <string>

#include "data/files/json.h"

namespace fovea::data {

// JSON for a reader's eyes or another program. JSON is UTF-8, names of files need not be: what is none
// becomes U+FFFD.
inline std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fovea::data
