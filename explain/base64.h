// Base64 (RFC 4648, with padding), for pixels and large weight maps inside JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::explain {

std::string to_base64(const void* bytes, size_t count);
// Nothing where the text is not exact base64.
std::optional<std::vector<uint8_t>> from_base64(std::string_view text);

}  // namespace fovea::explain
