// Lines of a stream, as they come, none longer than the limit allows.
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

// A line ends with "\n", "\r\n" or, where the first line does so, with "\r" alone. FileError where a
// line passes the limit `line`, or there are more than `items`: what follows cannot be told apart
// then. A byte order mark at the start is dropped.
class LineReader {
 public:
  LineReader(std::istream& stream, std::string name) : stream_(stream), name_(std::move(name)) {}

  // The next line without its end; false at the end of the stream.
  bool next(std::string& line);
  // The next line and those, `most` in all, that have arrived with it: a pipe is answered in batches,
  // a person's line at once. None at the end. Lines before one that is refused come first.
  std::vector<std::string> next_lines(size_t most);
  size_t number() const { return number_; }  // of the line last read, from 1

 private:
  // Whether `c` ends a line; takes the rest of the end.
  bool ends_line(int c, std::string& line);
  // Whether it passes the limit without what is no part of it: the mark, or a "\r" that may be of its
  // end.
  bool too_long(std::string_view line) const;

  std::istream& stream_;
  std::string name_;
  size_t number_ = 0;
  std::exception_ptr refused_;
  enum class End { kUnknown, kFeed, kReturn } end_ = End::kUnknown;
};

// All of a stream; FileError beyond the limit `file`.
std::string read_stream(std::istream& stream, const std::string& name);

}  // namespace fovea::data
