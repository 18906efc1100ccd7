#include "data/formats/llama2c.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "data/files/file.h"

namespace fovea::data {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr size_t kHeader = 7 * sizeof(int32_t);
constexpr int64_t kMost = int64_t{1} << 24;   // of any number of the header
constexpr uint32_t kLaterMagic = 0x616b3432;  // "ak42": versions 1 and 2

struct Part {
  std::string name;
  std::vector<int64_t> shape;
};

// The order of the file; the tables of rotations have no name.
std::vector<Part> parts_of(const Llama2c& c) {
  const int64_t shared = c.width / c.heads * c.key_heads,
                turns = c.context * (c.width / c.heads / 2);
  std::vector<Part> parts = {{"tok_embeddings", {c.vocabulary, c.width}},
                             {"attention_norm", {c.layers, c.width}},
                             {"wq", {c.layers, c.width, c.width}},
                             {"wk", {c.layers, shared, c.width}},
                             {"wv", {c.layers, shared, c.width}},
                             {"wo", {c.layers, c.width, c.width}},
                             {"ffn_norm", {c.layers, c.width}},
                             {"w1", {c.layers, c.hidden, c.width}},
                             {"w2", {c.layers, c.width, c.hidden}},
                             {"w3", {c.layers, c.hidden, c.width}},
                             {"norm", {c.width}},
                             {"", {2, turns}}};
  if (c.own_output) parts.push_back({"output", {c.vocabulary, c.width}});
  return parts;
}

template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void append(std::string& to, T value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  to.append(raw, sizeof value);
}

Llama2c parse_model_header(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kHeader)
    throw FileError(
        path, 0,
        fmt::format("{} bytes, expected a llama2.c checkpoint, whose header alone has {}",
                    bytes.size(), kHeader));
  if (number_at<uint32_t>(bytes, 0) == kLaterMagic)
    throw FileError(path, 0,
                    fmt::format("a llama2.c checkpoint of version {}, expected version 0, which "
                                "export.py writes with --version 0",
                                number_at<int32_t>(bytes, 4)));
  Llama2c c;
  size_t at = 0;
  const auto next = [&](const char* name, bool may_be_negative) {
    const int64_t value = number_at<int32_t>(bytes, at);
    at += sizeof(int32_t);
    const int64_t size = may_be_negative ? std::abs(value) : value;
    if (size < 1 || size > kMost)
      throw FileError(
          path, 0,
          fmt::format("{}: {}, expected 1 to {} in a llama2.c header", name, value, kMost));
    return value;
  };
  c.width = next("width", false);
  c.hidden = next("hidden width", false);
  c.layers = next("layers", false);
  c.heads = next("heads", false);
  c.key_heads = next("key heads", false);
  const int64_t vocabulary = next("vocabulary", true);
  c.vocabulary = std::abs(vocabulary);
  c.own_output = vocabulary < 0;
  c.context = next("context", false);
  if (c.width % c.heads != 0 || c.width / c.heads % 2 != 0)
    throw FileError(path, 0,
                    fmt::format("heads: {}, expected a number that divides the width {} into even "
                                "parts",
                                c.heads, c.width));
  if (c.heads % c.key_heads != 0)
    throw FileError(
        path, 0,
        fmt::format("key heads: {}, expected a divisor of the {} heads", c.key_heads, c.heads));
  return c;
}

}  // namespace

Llama2c parse_llama2c(std::string_view bytes, const std::string& path) {
  Llama2c c = parse_model_header(bytes, path);
  const std::vector<Part> parts = parts_of(c);
  uint64_t expected = kHeader;
  for (const Part& part : parts) {
    const auto size = byte_count(ElementType::kFloat32, part.shape);
    if (!size || *size > bytes.size() - std::min<uint64_t>(expected, bytes.size()))
      throw FileError(path, 0,
                      fmt::format("{} bytes, too few for '{}' of the sizes in the header",
                                  bytes.size(), part.name.empty() ? "rotations" : part.name));
    expected += *size;
  }
  if (expected != bytes.size())
    throw FileError(
        path, 0,
        fmt::format("{} bytes, expected {} by the sizes in the header", bytes.size(), expected));
  size_t at = kHeader;
  for (const Part& part : parts) {
    const size_t size = *byte_count(ElementType::kFloat32, part.shape);
    if (!part.name.empty()) {
      for (size_t i = 0; i < size; i += sizeof(float))
        if (!std::isfinite(number_at<float>(bytes, at + i)))
          throw FileError(
              path, 0, fmt::format("'{}': entry {} is not finite", part.name, i / sizeof(float)));
      c.arrays[part.name] = {ElementType::kFloat32, part.shape,
                             std::string(bytes.substr(at, size))};
    }
    at += size;
  }
  return c;
}

std::string llama2c_bytes(const Llama2c& c) {
  std::string out;
  for (const int64_t number : {c.width, c.hidden, c.layers, c.heads, c.key_heads,
                               c.own_output ? -c.vocabulary : c.vocabulary, c.context})
    append(out, static_cast<int32_t>(number));
  for (const Part& part : parts_of(c)) {
    if (part.name.empty())  // readers compute the rotations themselves
      out.append(*byte_count(ElementType::kFloat32, part.shape), '\0');
    else
      out += c.arrays.at(part.name).bytes;
  }
  return out;
}

Llama2cTokens parse_llama2c_tokens(std::string_view bytes, const std::string& path) {
  if (bytes.size() < sizeof(int32_t))
    throw FileError(path, 0, "cut short, expected a tokenizer of llama2.c");
  const int64_t longest = number_at<int32_t>(bytes, 0);
  Llama2cTokens out;
  size_t at = sizeof(int32_t);
  while (at < bytes.size()) {
    const size_t number = out.pieces.size();
    if (bytes.size() - at < sizeof(float) + sizeof(int32_t))
      throw FileError(path, 0, fmt::format("cut short in token {}", number));
    const float score = number_at<float>(bytes, at);
    const int64_t length = number_at<int32_t>(bytes, at + sizeof(float));
    at += sizeof(float) + sizeof(int32_t);
    if (std::isnan(score))
      throw FileError(path, 0, fmt::format("token {}: its score is not a number", number));
    if (length < 0 || length > longest || static_cast<uint64_t>(length) > bytes.size() - at)
      throw FileError(path, 0,
                      fmt::format("token {}: {} bytes, expected at most {}, and {} are left",
                                  number, length, longest, bytes.size() - at));
    out.pieces.emplace_back(bytes.substr(at, static_cast<size_t>(length)));
    out.scores.push_back(score);
    at += static_cast<size_t>(length);
  }
  constexpr size_t kBytesEnd = 259;
  if (out.pieces.size() < kBytesEnd)
    throw FileError(path, 0,
                    fmt::format("{} tokens, expected at least {}: three special ones and the bytes",
                                out.pieces.size(), kBytesEnd));
  return out;
}

std::string llama2c_token_bytes(const Llama2cTokens& tokens) {
  size_t longest = 0;
  for (const std::string& piece : tokens.pieces) longest = std::max(longest, piece.size());
  std::string out;
  append(out, static_cast<int32_t>(longest));
  for (size_t i = 0; i < tokens.pieces.size(); ++i) {
    append(out, tokens.scores[i]);
    append(out, static_cast<int32_t>(tokens.pieces[i].size()));
    out += tokens.pieces[i];
  }
  return out;
}

}  // namespace fovea::data
