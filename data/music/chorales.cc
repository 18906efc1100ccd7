#include "data/music/chorales.h"

#include <fmt/format.h>

#include <array>

#include "data/files/file.h"
#include "data/files/part_named.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

constexpr std::array<const char*, kVoices> kNames = {"soprano", "alto", "tenor", "bass"};
constexpr size_t kColumns = 2 + kVoices;

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (size_t at = 0;;) {
    const size_t end = line.find('\t', at);
    out.push_back(line.substr(at, end - at));
    if (end == std::string_view::npos) return out;
    at = end + 1;
  }
}

int64_t token_of(const std::string& text, const char* voice, const std::string& path, size_t line) {
  if (text == "-") return kHoldToken;
  if (text == "0") return kRestToken;
  const int64_t pitch = parse_integer(text, voice, path, line);
  if (pitch < 1 || pitch > 127)
    throw FileError(
        path, line,
        fmt::format("{}: pitch {}, expected 1 to 127, 0 (a rest) or - (goes on)", voice, pitch));
  return token_of_pitch(pitch);
}

std::vector<int64_t> voice_of(std::string_view text, const char* voice, const std::string& path,
                              size_t line) {
  std::vector<int64_t> out;
  for (const std::string& word : words(text)) out.push_back(token_of(word, voice, path, line));
  if (out.empty()) throw FileError(path, line, fmt::format("{}: empty, expected notes", voice));
  if (out[0] == kHoldToken)
    throw FileError(path, line, fmt::format("{}: begins with -, expected a note or a rest", voice));
  return out;
}

}  // namespace

Chorale parse_chorale(std::string_view line, const std::string& path, size_t number) {
  std::vector<std::string_view> columns = columns_of(line);
  Chorale out;
  if (columns.size() == kColumns) {
    out.name = columns[1];
    columns.erase(columns.begin(), columns.begin() + 2);
  }
  if (columns.size() != kVoices)
    throw FileError(path, number,
                    fmt::format("{} columns, expected four voices, or split, name and four voices, "
                                "with tabs between them",
                                columns.size()));
  std::array<std::vector<int64_t>, kVoices> voices;
  for (size_t v = 0; v < voices.size(); ++v) {
    voices[v] = voice_of(columns[v], kNames[v], path, number);
    if (voices[v].size() != voices[0].size())
      throw FileError(path, number,
                      fmt::format("{}: {} sixteenths, expected {}, the soprano's", kNames[v],
                                  voices[v].size(), voices[0].size()));
  }
  for (size_t t = 0; t < voices[0].size(); ++t)
    for (const auto& voice : voices) out.tokens.push_back(voice[t]);
  return out;
}

Chorales read_chorales(const std::string& path) {
  Chorales out;
  each_line(read_file(path), path, [&](size_t number, std::string_view line) {
    if (trimmed(line).empty()) return;
    const std::vector<std::string_view> columns = columns_of(line);
    if (columns.size() != kColumns)
      throw FileError(path, number,
                      fmt::format("{} columns, expected {}: split, name and four voices, with tabs "
                                  "between them",
                                  columns.size(), kColumns));
    out.parts.push_back(part_named(columns[0], path, number));
    out.pieces.push_back(parse_chorale(line, path, number));
  });
  if (out.pieces.empty()) throw FileError(path, 0, "no piece in it");
  return out;
}

std::string chorale_text(const Chorale& chorale) {
  std::string out;
  for (int64_t v = 0; v < kVoices; ++v) {
    if (v > 0) out += '\t';
    for (int64_t t = 0; t < chorale.sixteenths(); ++t) {
      const int64_t token = chorale.tokens[static_cast<size_t>(t * kVoices + v)];
      if (t > 0) out += ' ';
      out += token == kHoldToken ? "-" : std::to_string(pitch_of_token(token));
    }
  }
  return out;
}

}  // namespace fovea::data
