#include "data/files/file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "data/files/limits.h"
#include "data/files/lines.h"
#include "io/sha256.h"

namespace fovea::data {
namespace {

// No file has an empty name: what it stands for was generated.
std::string with_place(std::string_view path, size_t line, std::string_view what) {
  if (path.empty()) path = "generated data";
  constexpr size_t kLongest = 4096;  // that a system opens; a longer one is a text in its place
  const std::string cut = path.size() > kLongest ? shown(path) : std::string(path);
  return line ? fmt::format("{}:{}: {}", cut, line, what) : fmt::format("{}: {}", cut, what);
}

struct Inflater {
  z_stream stream{};
  Inflater() { inflateInit2(&stream, 15 + 16); }
  ~Inflater() { inflateEnd(&stream); }
};

// A gzip file may hold several members one after another; each must be whole.
std::string gunzip(const std::string& packed, const std::string& path) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  size_t left = packed.size();  // more than the stream was given, whose counter has 32 bits
  std::string text;
  std::string block(1 << 16, '\0');
  for (;;) {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(std::min<size_t>(left, 1 << 30));
      left -= stream.avail_in;
    }
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    text.append(block.data(), block.size() - stream.avail_out);
    if (text.size() > limit(Limit::kFile))
      throw FileError(path, 0, "unpacked, it is " + beyond(Limit::kFile));
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0 && left == 0) return text;
      inflateReset(&stream);
      continue;
    }
    if (status == Z_BUF_ERROR ||
        (status == Z_OK && stream.avail_in == 0 && left == 0 && stream.avail_out > 0))
      throw FileError(path, 0, "gzip stream cut short: expected more bytes (download it again)");
    if (status != Z_OK)
      throw FileError(path, 0,
                      fmt::format("damaged gzip stream: {}", stream.msg ? stream.msg : "bad data"));
  }
}

// The number of bytes of the UTF-8 character at `at`, or 0 if there is none (also for overlong
// forms and surrogates).
size_t utf8_length(std::string_view bytes, size_t at) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0;
  };
  const auto tail = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(at + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned second = byte(at + 1);
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
    return tail(at + 1) && tail(at + 2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned second = byte(at + 1);
    if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
    return tail(at + 1) && tail(at + 2) && tail(at + 3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

static thread_local ReadLog* current_log = nullptr;

ReadLog::ReadLog() : outer_(std::exchange(current_log, this)) {}
ReadLog::~ReadLog() { current_log = outer_; }

void ReadLog::note(std::string_view contents) {
  sums_.push_back(io::sha256(contents));
  if (outer_) outer_->note(contents);
}

std::string ReadLog::sha256() const {
  if (sums_.size() < 2) return sums_.empty() ? "" : sums_.front();
  std::string all;
  for (const std::string& sum : sums_) all += sum + "\n";
  return io::sha256(all);
}

FileError::FileError(std::string_view path, size_t line, std::string_view what)
    : InvalidArgument(visible(with_place(path, line, what))) {}

std::string unpacked(std::string bytes, const std::string& path) {
  if (bytes.starts_with("\x1f\x8b")) bytes = gunzip(bytes, path);
  if (bytes.empty()) throw FileError(path, 0, "expected data, found an empty file");
  if (bytes.starts_with("version https://git-lfs.github.com/spec/"))
    throw FileError(path, 0, "a Git LFS pointer, expected the file; `git lfs pull` brings it");
  if (current_log) current_log->note(bytes);
  return bytes;
}

bool is_utf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = utf8_length(bytes, at);
    if (!length) return false;
    at += length;
  }
  return true;
}

void visit_line(std::string_view line, const std::string& name, size_t number,
                const LineVisitor& visit) {
  if (line.size() > limit(Limit::kLine))
    throw FileError(name, number, "a line of " + beyond(Limit::kLine));
  if (number > limit(Limit::kItems)) throw FileError(name, number, beyond(Limit::kItems));
  if (line.find('\0') != std::string_view::npos)
    throw FileError(name, number,
                    line.starts_with("\xff\xfe") || line.starts_with("\xfe\xff")
                        ? "expected UTF-8 text, found UTF-16; save it as UTF-8"
                        : "expected text, found a NUL byte (is this a binary file?)");
  if (!is_utf8(line))
    throw FileError(name, number, fmt::format("expected UTF-8 text, found {}", shown(line)));
  try {
    visit(number, line);
  } catch (const InvalidArgument& error) {
    if (typeid(error) != typeid(InvalidArgument)) throw;  // a FileError names its place already
    throw FileError(name, number, error.what());
  }
}

void each_line(std::string_view text, const std::string& path, const LineVisitor& visit) {
  // Like LineReader: the end of the first line decides what ends a line.
  const size_t first = text.find_first_of("\r\n");
  const bool feeds = first == std::string_view::npos || text[first] == '\n' ||
                     text.substr(first).starts_with("\r\n");
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = feeds ? text.find('\n') : text.find_first_of("\r\n");
    std::string_view line = text.substr(0, end);
    if (feeds && line.ends_with('\r')) line.remove_suffix(1);
    if (number == 0) line = without_byte_order_mark(line);
    visit_line(line, path, ++number, visit);
    if (end == std::string_view::npos) return;
    text.remove_prefix(!feeds && text.substr(end).starts_with("\r\n") ? end + 2 : end + 1);
  }
}

void each_line(std::istream& stream, const std::string& name, const LineVisitor& visit) {
  LineReader lines(stream, name);
  for (std::string line; lines.next(line);) {
    try {
      visit_line(line, name, lines.number(), visit);
    } catch (const FileError& error) {  // of a file that the line names, perhaps
      if (std::string_view(error.what()).starts_with(name + ":")) throw;
      throw FileError(name, lines.number(), error.what());
    }
  }
}

double parse_number(std::string_view text, std::string_view what, const std::string& path,
                    size_t line) {
  double value = 0;
  std::string_view digits = text;
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty() ||
      !std::isfinite(value))
    throw FileError(path, line,
                    fmt::format("{}: expected a finite number, found {}", what, shown(text)));
  return value;
}

float parse_float(std::string_view text, std::string_view what, const std::string& path,
                  size_t line) {
  const double value = parse_number(text, what, path, line);
  if (std::abs(value) > std::numeric_limits<float>::max())
    throw FileError(
        path, line,
        fmt::format("{}: expected a number of at most 3.4e38, found {}", what, shown(text)));
  return static_cast<float>(value);
}

int64_t parse_integer(std::string_view text, std::string_view what, const std::string& path,
                      size_t line) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw FileError(path, line,
                    fmt::format("{}: expected an integer, found {}", what, shown(text)));
  return value;
}

std::string listed(const std::vector<std::string>& texts) {
  constexpr size_t kMost = 5;
  std::string out;
  for (size_t i = 0; i < std::min(texts.size(), kMost); ++i)
    out += (i ? ", " : "") + shown(texts[i]);
  return texts.size() > kMost ? out + fmt::format(" and {} more", texts.size() - kMost) : out;
}

std::string visible(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    const auto byte = static_cast<uint8_t>(text[at]);
    // Also U+0080 to U+009F, which some terminals treat as commands.
    const bool control = byte < 0x20 || byte == 0x7F ||
                         (length == 2 && byte == 0xC2 && static_cast<uint8_t>(text[at + 1]) < 0xA0);
    if (length == 0 || control) {
      for (size_t i = 0; i < std::max<size_t>(length, 1); ++i)
        out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[at + i]));
    } else {
      out += text.substr(at, length);
    }
    at += std::max<size_t>(length, 1);
  }
  return out;
}

std::string shown(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && end < 40) end += std::max<size_t>(utf8_length(text, end), 1);
  return "'" + visible(text.substr(0, end)) + (end < text.size() ? "…'" : "'");
}

}  // namespace fovea::data
