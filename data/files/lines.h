// Lines of a stream, as they arrive; no line is longer than the limit.
#pragma once

#include <cstddef>
#include <exception>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

// A text, or its first line, without the UTF-8 byte order mark that some editors put before it.
inline std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

// A line ends with "\n", "\r\n" or, if the first line does, with "\r" alone. FileError if a line is
// longer than the limit `line`, or if there are more lines than the limit `items`; the reader cannot
// continue then. A byte order mark at the start is dropped.
class LineReader {
 public:
  // `before`: lines that stand before the stream, which count too.
  LineReader(std::istream& stream, std::string name, size_t before = 0)
      : stream_(stream), name_(std::move(name)), number_(before) {}

  // The next line without its end; false at the end of the stream.
  bool next(std::string& line);
  // The next line and those that have already arrived after it, `most` in all: lines of a pipe come
  // in batches, a typed line comes alone. Empty at the end. A refused line ends a batch.
  std::vector<std::string> next_lines(size_t most);
  size_t number() const { return number_; }  // of the line last read, from 1

 private:
  // Whether `c` ends a line; if so, also reads the rest of the line end.
  bool ends_line(int c, std::string& line);
  // Whether it is longer than the limit, not counting a byte order mark or a "\r" that may belong to
  // its end.
  bool too_long(std::string_view line) const;

  std::istream& stream_;
  std::string name_;
  size_t number_;
  std::exception_ptr refused_;
  enum class End { kUnknown, kFeed, kReturn } end_ = End::kUnknown;
};

// All of a stream; FileError beyond the limit `file`.
std::string read_stream(std::istream& stream, const std::string& name);

}  // namespace fovea::data
