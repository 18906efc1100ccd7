#include "data/formats/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "data/files/file.h"

namespace fovea::data {
namespace {

// A sorted map. An ordered object is searched from its start for every name, which takes seconds
// for the names of a large file.
using HeaderJson = nlohmann::json;

constexpr uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr size_t kLongestList = 1000;

struct TensorTypeName {
  ElementType type;
  std::string_view name;
};
constexpr TensorTypeName kTensorTypes[] = {
    {ElementType::kBool, "BOOL"},   {ElementType::kUInt8, "U8"},
    {ElementType::kInt8, "I8"},     {ElementType::kInt16, "I16"},
    {ElementType::kInt32, "I32"},   {ElementType::kInt64, "I64"},
    {ElementType::kFloat16, "F16"}, {ElementType::kBFloat16, "BF16"},
    {ElementType::kFloat32, "F32"}, {ElementType::kFloat64, "F64"}};

// Refuses a name that occurs twice, of which a parser would silently keep one, and nesting and lists
// that no header has: what is parsed takes up to twenty times the memory of its text. (The
// parser's own callback could do this, but it searches the whole object at the end of every entry.)
class HeaderCheck : public nlohmann::json_sax<HeaderJson> {
 public:
  explicit HeaderCheck(const std::string& path) : path_(path) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    names_.emplace_back();
    return value() && enter();
  }
  bool key(string_t& name) override {
    values_ = 0;
    if (!names_.back().insert(name).second)
      throw FileError(path_, 0, "safetensors header: " + shown(name) + " given twice");
    return true;
  }
  bool end_object() override {
    names_.pop_back();
    return leave();
  }
  bool start_array(std::size_t) override { return value() && enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool value() {
    if (++values_ > kLongestList) throw FileError(path_, 0, "safetensors header: a list too long");
    return true;
  }
  bool enter() {
    if (++depth_ > 4) throw FileError(path_, 0, "safetensors header: nested too deeply");
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  const std::string& path_;
  int depth_ = 0;
  size_t values_ = 0;  // since the last name
  std::vector<std::set<std::string>> names_;
};

HeaderJson parse_header(std::string_view text, const std::string& path) {
  HeaderCheck check(path);
  HeaderJson header(HeaderJson::value_t::discarded);
  if (HeaderJson::sax_parse(text, &check)) header = HeaderJson::parse(text);
  if (!header.is_object()) throw FileError(path, 0, "safetensors header: not a JSON object");
  return header;
}

struct Span {
  uint64_t begin, end;
  std::string name;
};

// Unsigned integers and nothing else.
template <class Number>
std::vector<Number> numbers(const HeaderJson& entry, const char* field, const std::string& where,
                            const std::string& path) {
  std::vector<Number> list;
  if (!entry.contains(field) || !entry[field].is_array() || entry[field].size() > 32) {
    throw FileError(path, 0, where + field + " missing, or no list of at most 32 numbers");
  }
  for (const HeaderJson& n : entry[field]) {
    if (!n.is_number_unsigned() || n.get<uint64_t>() > uint64_t{1} << 62) {
      throw FileError(
          path, 0,
          where + field + " holds " + shown(n.dump()) + ", expected whole numbers of at least 0");
    }
    list.push_back(static_cast<Number>(n.get<uint64_t>()));
  }
  return list;
}

Array parse_entry(const std::string& name, const HeaderJson& entry, std::string_view data,
                  const std::string& path, Span* span) {
  const std::string where = "tensor " + shown(name) + ": ";
  if (!entry.is_object()) throw FileError(path, 0, where + "not a JSON object");
  for (const auto& [field, value] : entry.items()) {
    if (field != "dtype" && field != "shape" && field != "data_offsets") {
      throw FileError(path, 0, where + "unknown entry " + shown(field));
    }
  }
  Array array;
  const std::string type = entry.contains("dtype") && entry["dtype"].is_string()
                               ? entry["dtype"].get<std::string>()
                               : "";
  const auto* known = std::find_if(std::begin(kTensorTypes), std::end(kTensorTypes),
                                   [&](const TensorTypeName& t) { return t.name == type; });
  if (known == std::end(kTensorTypes))
    throw FileError(path, 0, where + "unknown dtype " + shown(type));
  array.type = known->type;
  array.shape = numbers<int64_t>(entry, "shape", where, path);
  const auto offsets = numbers<uint64_t>(entry, "data_offsets", where, path);
  const auto expected = byte_count(array.type, array.shape);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size() || !expected ||
      offsets[1] - offsets[0] != *expected) {
    throw FileError(path, 0,
                    where + "data_offsets " + entry["data_offsets"].dump() + ", expected " +
                        (expected ? std::to_string(*expected) : "an impossible number of") +
                        " bytes within " + std::to_string(data.size()));
  }
  *span = {offsets[0], offsets[1], name};
  array.bytes = data.substr(offsets[0], *expected);
  return array;
}

// The arrays' bytes follow one another from the first byte to the last.
void check_cover(std::vector<Span> spans, uint64_t size, const std::string& path) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const Span& span : spans) {
    if (span.begin != end) {
      throw FileError(path, 0,
                      "tensor " + shown(span.name) + ": starts at byte " +
                          std::to_string(span.begin) + ", expected " + std::to_string(end) +
                          (span.begin < end ? " (an overlap)" : " (a gap)"));
    }
    end = span.end;
  }
  if (end != size) {
    throw FileError(path, 0,
                    "safetensors data of " + std::to_string(size) +
                        " bytes, of which tensors use " + std::to_string(end));
  }
}

}  // namespace

Safetensors parse_safetensors(std::string_view file, const std::string& path) {
  uint64_t length = 0;
  for (size_t i = 0; i < 8 && i < file.size(); ++i)
    length |= uint64_t{static_cast<uint8_t>(file[i])} << (8 * i);
  if (file.size() < 8 || length > file.size() - 8 || length > kLongestHeader) {
    throw FileError(path, 0,
                    "safetensors header of " + std::to_string(length) + " bytes in a file of " +
                        std::to_string(file.size()) + ": cut short, or not safetensors");
  }
  const HeaderJson header = parse_header(file.substr(8, length), path);
  const std::string_view data = file.substr(8 + length);
  Safetensors content;
  std::vector<Span> spans;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      content.arrays[name] = parse_entry(name, entry, data, path, &spans.emplace_back());
      continue;
    }
    if (!entry.is_object())
      throw FileError(path, 0, "safetensors header: __metadata__ is not a JSON object");
    for (const auto& [word, text] : entry.items()) {
      if (!text.is_string())
        throw FileError(path, 0,
                        "safetensors header: __metadata__ " + shown(word) + " is not a text");
      content.metadata[word] = text.get<std::string>();
    }
  }
  check_cover(std::move(spans), data.size(), path);
  return content;
}

std::string safetensors_bytes(const Safetensors& content) {
  std::string text;
  const auto add = [&](const std::string& name, const HeaderJson& entry) {
    text += (text.empty() ? "{" : ",") + HeaderJson(name).dump() + ":" + entry.dump();
  };
  if (!content.metadata.empty()) add("__metadata__", content.metadata);
  uint64_t end = 0;
  for (const auto& [name, array] : content.arrays) {
    const uint64_t begin = end;
    end += array.bytes.size();
    const auto* type =
        std::find_if(std::begin(kTensorTypes), std::end(kTensorTypes),
                     [wanted = array.type](const TensorTypeName& t) { return t.type == wanted; });
    add(name, {{"dtype", type->name}, {"shape", array.shape}, {"data_offsets", {begin, end}}});
  }
  text += text.empty() ? "{}" : "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts at a multiple of eight
  std::string file;
  file.reserve(8 + text.size() + end);
  for (size_t i = 0; i < 8; ++i) file += static_cast<char>(text.size() >> (8 * i) & 0xff);
  file += text;
  for (const auto& [name, array] : content.arrays) file += array.bytes;
  return file;
}

}  // namespace fovea::data
