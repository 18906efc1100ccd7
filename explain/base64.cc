#include "explain/base64.h"

#include <array>

namespace fovea::explain {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> kValues = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i) values[static_cast<uint8_t>(kAlphabet[i])] = i;
  return values;
}();

}  // namespace

std::string to_base64(const void* bytes, size_t count) {
  const auto* in = static_cast<const uint8_t*>(bytes);
  std::string out;
  out.reserve((count + 2) / 3 * 4);
  for (size_t i = 0; i < count; i += 3) {
    const size_t left = count - i;
    const uint32_t word =
        in[i] << 16 | (left > 1 ? in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);
    out += kAlphabet[word >> 18];
    out += kAlphabet[word >> 12 & 63];
    out += left > 1 ? kAlphabet[word >> 6 & 63] : '=';
    out += left > 2 ? kAlphabet[word & 63] : '=';
  }
  return out;
}

std::optional<std::vector<uint8_t>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.empty() ? 0 : (text.back() == '=') + (text[text.size() - 2] == '=');
  std::vector<uint8_t> out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    uint32_t word = 0;
    for (size_t d = 0; d < 4; ++d) {
      const int value = d < digits ? kValues[static_cast<uint8_t>(text[i + d])] : 0;
      if (value < 0 || (d >= digits && text[i + d] != '=')) return std::nullopt;
      word = word << 6 | value;
    }
    for (size_t b = 0; b + 1 < digits; ++b) out.push_back(word >> (16 - 8 * b) & 255);
  }
  return out;
}

}  // namespace fovea::explain
