#include "text/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "data/files/file.h"
#include "fovea/error.h"

namespace fovea::text {
namespace {

using data::FileError;
static_assert(std::endian::native == std::endian::little,
              "word2vec's binary files hold little-endian floats");

struct Header {
  int64_t count = -1, width = 0;
  size_t bytes = 0;
};

// "400000 300\n", or nothing where the first line is a word and its vector.
Header header_of(std::string_view bytes) {
  const size_t end = bytes.substr(0, 64).find('\n');
  if (end == std::string_view::npos) return {};
  std::string_view line = bytes.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  Header out;
  const auto [middle, first] = std::from_chars(line.data(), line.data() + line.size(), out.count);
  if (first != std::errc() || middle == line.data() + line.size() || *middle != ' ') return {};
  const auto [stop, second] = std::from_chars(middle + 1, line.data() + line.size(), out.width);
  if (second != std::errc() ||
      std::string_view(stop, static_cast<size_t>(line.data() + line.size() - stop))
              .find_first_not_of(' ') != std::string_view::npos)
    return {};
  out.bytes = end + 1;
  return out;
}

class Builder {
 public:
  Builder(const std::string& path) : path_(path) {}
  // Whether the word is taken; one that is not UTF-8 (published files have some) is counted and
  // left out.
  bool add(std::string_view word, size_t line) {
    if (word.empty()) throw FileError(path_, line, "expected a word before its numbers");
    if (!data::is_utf8(word)) return ++out.not_utf8, false;
    if (word.find('\n') != std::string_view::npos)
      throw FileError(path_, line,
                      fmt::format("expected a word in one line, found {}", data::shown(word)));
    if (!seen_.emplace(word).second)
      throw FileError(path_, line, fmt::format("the word {} comes twice", data::shown(word)));
    out.words.emplace_back(word);
    return true;
  }
  void number(float value, size_t line) {
    if (!std::isfinite(value)) throw FileError(path_, line, "a number that is not finite");
    out.values.push_back(value);
  }
  Vectors out;

 private:
  const std::string& path_;
  std::unordered_set<std::string> seen_;
};

// The numbers after the word of a line; FileError where there is something else.
std::vector<float> numbers_of(std::string_view line, const std::string& path, size_t number) {
  std::vector<float> out;
  for (size_t at = std::min(line.find(' '), line.size()); at < line.size();) {
    if (line[at] == ' ') {
      ++at;
      continue;
    }
    float value = 0;
    const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), value);
    if (error != std::errc() || (end != line.data() + line.size() && *end != ' '))
      throw FileError(path, number,
                      fmt::format("expected a number, found {}",
                                  data::shown(line.substr(at, line.find(' ', at) - at))));
    out.push_back(value);
    at = static_cast<size_t>(end - line.data());
  }
  return out;
}

std::string_view next_line(std::string_view bytes, size_t& at) {
  const size_t end = std::min(bytes.find('\n', at), bytes.size());
  std::string_view line = bytes.substr(at, end - at);
  at = end + 1;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Vectors parse_text(std::string_view bytes, const Header& header, const std::string& path) {
  Builder builder(path);
  builder.out.width = header.width;
  size_t number = header.bytes ? 1 : 0;
  for (size_t at = header.bytes; at < bytes.size();) {
    const std::string_view line = next_line(bytes, at);
    const std::vector<float> numbers = numbers_of(line, path, ++number);
    if (builder.out.width == 0) builder.out.width = static_cast<int64_t>(numbers.size());
    if (numbers.empty() || static_cast<int64_t>(numbers.size()) != builder.out.width)
      throw FileError(path, number,
                      fmt::format("{} numbers, expected {}", numbers.size(),
                                  std::max<int64_t>(builder.out.width, 1)));
    if (!builder.add(line.substr(0, line.find(' ')), number)) continue;
    for (const float value : numbers) builder.number(value, number);
  }
  return std::move(builder.out);
}

// Whether what follows the header is a word and `width` numbers in digits.
bool is_text(std::string_view bytes, const Header& header, const std::string& path) {
  size_t at = header.bytes;
  try {
    return static_cast<int64_t>(numbers_of(next_line(bytes, at), path, 2).size()) == header.width;
  } catch (const FileError&) {
    return false;
  }
}

Vectors parse_binary(std::string_view bytes, const Header& header, const std::string& path) {
  Builder builder(path);
  builder.out.width = header.width;
  const size_t row = static_cast<size_t>(header.width) * sizeof(float);
  size_t at = header.bytes;
  for (int64_t i = 0; i < header.count; ++i) {
    while (at < bytes.size() && bytes[at] == '\n') ++at;
    const size_t space = bytes.find(' ', at);
    if (space == std::string_view::npos || bytes.size() - space - 1 < row)
      throw FileError(path, 0, fmt::format("ends after {} of {} words", i, header.count));
    const std::string_view word = bytes.substr(at, space - at);
    at = space + 1 + row;
    if (!builder.add(word, 0)) continue;
    for (int64_t c = 0; c < header.width; ++c) {
      float value;
      std::memcpy(&value, bytes.data() + space + 1 + static_cast<size_t>(c) * sizeof(float),
                  sizeof(float));
      builder.number(value, 0);
    }
  }
  return std::move(builder.out);
}

}  // namespace

Vectors parse_vectors(std::string_view bytes, const std::string& path) {
  const Header header = header_of(bytes);
  if (header.count >= 0 && (header.width < 1 || header.width > kMostWidth))
    throw FileError(path, 1, fmt::format("width {}, expected 1 to {}", header.width, kMostWidth));
  const bool binary = header.count >= 0 && !is_text(bytes, header, path);
  Vectors out = binary ? parse_binary(bytes, header, path) : parse_text(bytes, header, path);
  if (const auto found = static_cast<int64_t>(out.words.size()) + out.not_utf8;
      header.count >= 0 && header.count != found)
    throw FileError(path, 1, fmt::format("{} words announced, {} found", header.count, found));
  if (out.words.empty()) throw FileError(path, 0, "no vectors, expected at least one");
  return out;
}

Vectors read_vectors(const std::string& path) { return parse_vectors(data::read_file(path), path); }

std::string vector_bytes(const Vectors& vectors, VectorFormat format) {
  std::string out;
  if (format != VectorFormat::kGlove)
    out = fmt::format("{} {}\n", vectors.words.size(), vectors.width);
  for (size_t i = 0; i < vectors.words.size(); ++i) {
    const float* row = vectors.of(i);
    out += vectors.words[i];
    if (format == VectorFormat::kWord2vecBinary) {
      out += ' ';
      out.append(reinterpret_cast<const char*>(row),
                 static_cast<size_t>(vectors.width) * sizeof(float));
    } else {
      for (int64_t c = 0; c < vectors.width; ++c) out += fmt::format(" {}", row[c]);
    }
    out += '\n';
  }
  return out;
}

}  // namespace fovea::text
