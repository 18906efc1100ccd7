#include "data/files/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/files/file.h"
#include "data/files/lines.h"

namespace fovea::data {
namespace {

constexpr std::string_view kSeparators = ",;\t";
// Of each separator outside quotes; a comma with a blank after it is a word's own beside others.
using Counts = std::array<size_t, kSeparators.size()>;

// Those of the next line that is not blank, which is taken from the text.
Counts take_counts(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  Counts counts{};
  bool quoted = false;
  while (!text.empty()) {
    const char c = text[0];
    if (!quoted && (c == '\n' || c == '\r')) break;
    text.remove_prefix(1);
    if (c == '"') quoted = !quoted;
    const bool of_words = quoted || (c == ',' && text.starts_with(' '));
    const size_t place = of_words ? std::string_view::npos : kSeparators.find(c);
    if (place != std::string_view::npos) ++counts[place];
  }
  return counts;
}

// A comma, unless the first line has none but has semicolons, or tabs; or unless its commas are words'
// own: a blank follows each, or the second line has another number of them, and it has as many
// semicolons (or tabs) as the first.
char separator_of(std::string_view text) {
  const bool commas =
      text.substr(0, text.find_first_of("\r\n")).find(',') != std::string_view::npos;
  const Counts first = take_counts(text), second = take_counts(text);
  for (size_t other = 1; other < kSeparators.size(); ++other) {
    if (first[other] == 0) continue;
    const bool words_own = first[0] == 0 || first[0] != second[0];
    if (!commas || (words_own && first[other] == second[other])) return kSeparators[other];
  }
  return kSeparators[0];
}

bool all_empty(const std::vector<std::string>& fields) {
  return std::all_of(fields.begin(), fields.end(), [](const auto& field) { return field.empty(); });
}

}  // namespace

std::string_view name_of(char separator) {
  return separator == ';' ? "semicolon" : separator == '\t' ? "tab" : "comma";
}

CsvReader::CsvReader(std::string_view text, const std::string& name)
    : text_(without_byte_order_mark(text)),
      name_(name),
      separator_(separator_of(text_)),
      ends_{separator_, '\r', '\n'} {}

std::optional<std::vector<std::string>> CsvReader::next() {
  for (;;) {
    auto fields = next_or_blank();
    if (!fields || fields->size() == 1 || !all_empty(*fields)) return fields;
  }
}

std::optional<std::vector<std::string>> CsvReader::next_or_blank() {
  while (take_end()) {
  }
  if (text_.empty()) return std::nullopt;
  start_ = line_;
  std::vector<std::string> fields;
  do fields.push_back(field());
  while (consume(separator_));
  if (!text_.empty() && !take_end())
    throw FileError(
        name_, line_,
        fmt::format("expected a {} or the line's end after a closing quote", name_of(separator_)));
  return fields;
}

bool CsvReader::take_end() {
  const bool back = consume('\r');
  if (!consume('\n') && !back) return false;
  ++line_;
  return true;
}

bool CsvReader::consume(char c) {
  if (text_.empty() || text_[0] != c) return false;
  text_.remove_prefix(1);
  return true;
}

std::string CsvReader::field() {
  if (!consume('"')) {
    const size_t end = std::min(text_.find_first_of(ends_), text_.size());
    std::string value(text_.substr(0, end));
    text_.remove_prefix(end);
    return value;
  }
  std::string value;
  for (;;) {
    const size_t end = text_.find('"');
    if (end == std::string_view::npos)
      throw FileError(name_, start_, "a quoted field has no closing quote");
    value += text_.substr(0, end);
    line_ += static_cast<size_t>(
        std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    text_.remove_prefix(end + 1);
    if (!consume('"')) return value;
    value += '"';
  }
}

}  // namespace fovea::data
