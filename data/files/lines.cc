#include "data/files/lines.h"

#include <utility>

#include "data/files/file.h"
#include "data/files/limits.h"

namespace fovea::data {

bool LineReader::ends_line(int c, std::string& line) {
  std::streambuf& buffer = *stream_.rdbuf();
  if (c == '\n') {
    if (end_ == End::kUnknown) end_ = End::kFeed;
    if (line.ends_with('\r')) line.pop_back();
    return true;
  }
  if (c != '\r' || end_ == End::kFeed) return false;
  if (end_ == End::kReturn) {
    if (buffer.sgetc() == '\n') buffer.sbumpc();
    return true;
  }
  // The end of the first line decides. "\r\n" counts as a line feed, so the next byte must be
  // known.
  if (buffer.sgetc() == '\n') return false;
  end_ = End::kReturn;
  return true;
}

bool LineReader::too_long(std::string_view line) const {
  const uint64_t most = limit(Limit::kLine);
  if (line.size() <= most) return false;
  if (number_ == 0) line = without_byte_order_mark(line);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.size() > most;
}

bool LineReader::next(std::string& line) {
  line.clear();
  if (!stream_.good()) return false;
  std::streambuf& buffer = *stream_.rdbuf();
  for (int c = buffer.sbumpc();; c = buffer.sbumpc()) {
    if (c == std::char_traits<char>::eof()) {
      stream_.setstate(std::ios::eofbit);
      if (line.empty()) return false;
      if (line.ends_with('\r')) line.pop_back();  // of a line end that was cut off
      break;
    }
    if (ends_line(c, line)) break;
    line += static_cast<char>(c);
    if (too_long(line)) throw FileError(name_, number_ + 1, "a line of " + beyond(Limit::kLine));
  }
  if (++number_ > limit(Limit::kItems)) throw FileError(name_, number_, beyond(Limit::kItems));
  if (number_ == 1) line.erase(0, line.size() - without_byte_order_mark(line).size());
  return true;
}

std::vector<std::string> LineReader::next_lines(size_t most) {
  if (refused_) std::rethrow_exception(std::exchange(refused_, nullptr));
  std::vector<std::string> lines;
  std::string line;
  if (most == 0 || !next(line)) return lines;
  lines.push_back(line);
  try {
    while (lines.size() < most && stream_.rdbuf()->in_avail() > 0 && next(line))
      lines.push_back(line);
  } catch (const FileError&) {
    refused_ = std::current_exception();
  }
  return lines;
}

std::string read_stream(std::istream& stream, const std::string& name) {
  const uint64_t most = limit(Limit::kFile);
  std::string text, block(1 << 16, '\0');
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) ||
         stream.gcount() > 0) {
    text.append(block, 0, static_cast<size_t>(stream.gcount()));
    if (text.size() > most) throw FileError(name, 0, beyond(Limit::kFile));
  }
  return text;
}

}  // namespace fovea::data
