#include "data/formats/npy.h"

#include <charconv>
#include <cstring>

#include "data/files/file.h"

namespace fovea::data {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "\x93NUMPY"sv;

struct TypeName {
  ElementType type;
  std::string_view name;
};
constexpr TypeName kTypes[] = {
    {ElementType::kBool, "|b1"},    {ElementType::kUInt8, "|u1"},   {ElementType::kInt8, "|i1"},
    {ElementType::kInt16, "<i2"},   {ElementType::kInt32, "<i4"},   {ElementType::kInt64, "<i8"},
    {ElementType::kFloat16, "<f2"}, {ElementType::kFloat32, "<f4"}, {ElementType::kFloat64, "<f8"}};

// The header: a Python dictionary of three entries, read strictly.
class Header {
 public:
  Header(std::string_view text, const std::string& path) : text_(text), path_(path) {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted_text();
      expect(':');
      if (key == "descr" && !type_name)
        type_name = quoted_text();
      else if (key == "fortran_order" && !columns_first)
        columns_first = boolean();
      else if (key == "shape" && !shape)
        shape = tuple();
      else
        fail("entry '" + std::string(key) + "' unknown or given twice");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("something after the dictionary");
    if (!type_name || !columns_first || !shape) fail("expected descr, fortran_order and shape");
  }

  std::optional<std::string_view> type_name;
  std::optional<bool> columns_first;
  std::optional<std::vector<int64_t>> shape;

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(path_, 0, "npy header: " + what);
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "' at byte " + std::to_string(at_));
  }
  std::string_view quoted_text() {
    skip_space();
    const char quote = at_ < text_.size() && text_[at_] == '"' ? '"' : '\'';
    expect(quote);
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("a string without end");
    const std::string_view found = text_.substr(at_, end - at_);
    at_ = end + 1;
    return found;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True"sv, true}, {"False"sv, false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("fortran_order: expected True or False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> numbers;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t n = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
      if (error != std::errc() || n < 0) fail("shape: expected sizes of at least 0");
      if (numbers.size() == 32) fail("shape: more than 32 dimensions");
      numbers.push_back(n);
      at_ = static_cast<size_t>(end - text_.data());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return numbers;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// Column-major elements in row-major order.
std::string rows_first(std::string_view from, const std::vector<int64_t>& shape, size_t size) {
  std::string to(from.size(), '\0');
  std::vector<int64_t> index(shape.size(), 0);
  for (size_t n = 0; n < to.size(); n += size) {
    size_t offset = 0;
    for (size_t d = shape.size(); d-- > 0;)
      offset = offset * static_cast<size_t>(shape[d]) + static_cast<size_t>(index[d]);
    std::memcpy(to.data() + n, from.data() + offset * size, size);
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
  }
  return to;
}

}  // namespace

Array parse_npy(std::string_view file, const std::string& path) {
  if (!file.starts_with(kMagic) || file.size() < 10)
    throw FileError(path, 0, "not an npy file: it does not start with \\x93NUMPY");
  const int version = static_cast<uint8_t>(file[6]);
  if (version < 1 || version > 3)
    throw FileError(path, 0, "npy version " + std::to_string(version) + ", expected 1 to 3");
  const size_t length_size = version == 1 ? 2 : 4, start = 8 + length_size;
  if (file.size() < start) throw FileError(path, 0, "npy header cut short");
  const uint64_t length = little_endian(file.substr(8, length_size));
  if (length > file.size() - start) {
    throw FileError(path, 0,
                    "npy header of " + std::to_string(length) + " bytes in a file of " +
                        std::to_string(file.size()));
  }
  const Header header(file.substr(start, length), path);

  Array array;
  bool known = false;
  for (const TypeName& type : kTypes) {
    if (type.name != *header.type_name) continue;
    array.type = type.type;
    known = true;
  }
  if (!known) {
    throw FileError(path, 0,
                    "npy type " + shown(*header.type_name) +
                        ", expected a little-endian number of at most 64 bits, or bool");
  }
  array.shape = *header.shape;
  const std::string_view data = file.substr(start + length);
  const auto expected = byte_count(array.type, array.shape);
  if (!expected || *expected != data.size()) {
    throw FileError(path, 0,
                    "npy data of " + std::to_string(data.size()) + " bytes, expected " +
                        (expected ? std::to_string(*expected) : "more than there can be") +
                        " for its shape");
  }
  array.bytes = *header.columns_first ? rows_first(data, array.shape, size_of(array.type))
                                      : std::string(data);
  return array;
}

std::string npy_bytes(const Array& array) {
  std::string_view name;
  for (const TypeName& type : kTypes) {
    if (type.type == array.type) name = type.name;
  }
  if (name.empty()) throw Unsupported("npy: the format has no bfloat16; use safetensors");
  std::string header = "{'descr': '" + std::string(name) + "', 'fortran_order': False, 'shape': (";
  for (const int64_t n : array.shape) header += std::to_string(n) + ", ";
  if (array.shape.size() > 1) header.resize(header.size() - 2);
  header += "), }";
  const size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');  // the data starts at a multiple of 64
  header += '\n';
  std::string file(kMagic);
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  return file + header + array.bytes;
}

}  // namespace fovea::data
