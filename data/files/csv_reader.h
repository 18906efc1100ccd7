// Records of comma-separated values (RFC 4180), also between semicolons or tabs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

// "comma", "semicolon", "tab".
std::string_view name_of(char separator);

// Reads one record at a time; a quoted field may contain line ends. `text` and `name`, which errors
// begin with, must outlive it.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& name);

  // The next record's fields, or nothing at the end. Lines without a character beside separators are
  // skipped: spreadsheets write them for rows that were emptied.
  std::optional<std::vector<std::string>> next();
  size_t start_line() const { return start_; }  // of the last record, from 1
  // A comma, unless the first line has none outside quotes but has semicolons, or tabs; or unless its
  // commas are words' own: the second line has another number of them, and as many semicolons (or tabs)
  // as the first.
  char separator() const { return separator_; }

 private:
  std::optional<std::vector<std::string>> next_or_blank();
  bool take_end();  // "\n", "\r\n" or "\r"
  bool consume(char c);
  std::string field();

  std::string_view text_;
  const std::string& name_;
  const char separator_;
  const std::string ends_;  // of a field without quotes
  size_t line_ = 1, start_ = 1;
};

}  // namespace fovea::data
