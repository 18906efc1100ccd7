// Reading files that may be gzipped, truncated, or not text at all. An error is one line that says
// what is wrong and where.
#pragma once

#include <cstddef>
#include <functional>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/error.h"

namespace fovea::data {

// A file is not what was expected: "path:line: what was expected, what was found" (line 0 leaves it
// out). One line of printable text, whatever the file holds.
struct FileError : InvalidArgument {
  FileError(std::string_view path, size_t line, std::string_view what);
};

// The whole file, decompressed if it starts with gzip's two bytes. Refuses a folder, a missing or
// unreadable file, a truncated or damaged gzip stream, and more than the limit `file`. An empty file
// is an error, because no format allows it.
std::string read_file(const std::string& path);
// The same for bytes that were read; `path` names them in errors.
std::string unpacked(std::string bytes, const std::string& path);

// While it exists, it hashes the contents, unpacked, of every file that read_file reads on its
// thread, in order; paths do not matter. The hash of one file is its sha256; of several files it is
// the sha256 of theirs.
class ReadLog {
 public:
  ReadLog();
  ~ReadLog();
  ReadLog(const ReadLog&) = delete;
  ReadLog& operator=(const ReadLog&) = delete;

  std::string sha256() const;  // empty: nothing was read
  void note(std::string_view contents);

 private:
  ReadLog* outer_;
  std::vector<std::string> sums_;
};

// Calls visit(line number from 1, line) for each line of `text`, without its end ("\n", "\r\n", or
// "\r" if the first line ends so). In "\r\r\n" the first "\r" is part of the line. Refuses lines
// beyond the limits of data/files/limits.h, bytes that are not UTF-8, and NUL; `path` names the file
// in errors. A UTF-8 byte order mark at the start is dropped.
using LineVisitor = std::function<void(size_t, std::string_view)>;
void each_line(std::string_view text, const std::string& path, const LineVisitor& visit);
// The same for one line whose end was removed.
void visit_line(std::string_view line, const std::string& path, size_t number,
                const LineVisitor& visit);

// The same for a stream, line by line as it arrives.
void each_line(std::istream& stream, const std::string& name, const LineVisitor& visit);

bool is_utf8(std::string_view bytes);

// A finite number and nothing else, or an error that quotes the text; `what` names the column or
// field.
double parse_number(std::string_view text, std::string_view what, const std::string& path,
                    size_t line);
// The same, and no larger than a float can be.
float parse_float(std::string_view text, std::string_view what, const std::string& path,
                  size_t line);
int64_t parse_integer(std::string_view text, std::string_view what, const std::string& path,
                      size_t line);

// A few texts for a message, each in quotes, and how many more there are.
std::string listed(const std::vector<std::string>& texts);
// Text for a terminal: control characters and broken UTF-8 are written as escapes ("\\x1b").
std::string visible(std::string_view text);
// Text for an error message: printable, in quotes, at most 40 bytes of it.
std::string shown(std::string_view text);

}  // namespace fovea::data
