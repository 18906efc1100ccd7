// The JSON of an Explanation, both ways from one description: `describe` names each field of a type
// once, Writer and Reader walk it.
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "data/files/file.h"
#include "data/files/json.h"
#include "data/files/read.h"
#include "explain/base64.h"
#include "explain/explanation.h"
#include "explain/explanation_fields.h"
#include "fovea/error.h"

namespace fovea::explain {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = size_t{256} << 20;
// A dense map larger than this is written as base64 float32. It takes a third of the bytes, and no
// numbers have to be parsed.
constexpr size_t kMostNumbersAsText = 4096;

// ---- writing ------------------------------------------------------------------------------------

// The shortest decimal that reads back as this float; a float as double would print 17 digits.
double shortest(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double number = 0;
  std::from_chars(text, end, number);
  return number;
}

json encode(int value) { return value; }
json encode(bool value) { return value; }
json encode(double value) { return std::isnan(value) ? json(nullptr) : json(value); }
json encode(const std::string& value) { return value; }
json encode(const Link& link) { return json::array({link.query, link.key, shortest(link.weight)}); }
json encode(const std::vector<uint8_t>& bytes) { return to_base64(bytes.data(), bytes.size()); }
json encode(const std::vector<float>& numbers) {
  static_assert(std::endian::native == std::endian::little, "base64 weights are little-endian");
  if (numbers.size() > kMostNumbersAsText)
    return to_base64(numbers.data(), numbers.size() * sizeof(float));
  json out = json::array();
  for (float number : numbers) out.push_back(shortest(number));
  return out;
}
template <class Enum>
requires std::is_enum_v<Enum> json encode(Enum value) {
  return Names<Enum>::kAll[static_cast<size_t>(value)];
}
template <class T>
requires std::is_class_v<T> json encode(const T& value);
template <class T>
json encode(const std::optional<T>& value);
template <class T>
json encode(const std::vector<T>& values);

struct Writer {
  json out = json::object();
  template <class T>
  void operator()(const char* name, const T& value) {
    out[name] = encode(value);
  }
  template <class T>
  void operator()(const char* name, const T& value, const std::type_identity_t<T>& absent) {
    if constexpr (requires { value.has_value(); }) {
      if (!value.has_value()) return;
    } else if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string>) {
      if (value.empty()) return;
    } else {
      if (value == absent) return;
    }
    out[name] = encode(value);
  }
};

template <class T>
requires std::is_class_v<T> json encode(const T& value) {
  Writer writer;
  describe(writer,
           const_cast<T&>(value));  // Writer's fields are const: describe serves both directions
  return std::move(writer.out);
}
template <class T>
json encode(const std::optional<T>& value) {
  return encode(*value);
}
template <class T>
json encode(const std::vector<T>& values) {
  json out = json::array();
  for (const T& value : values) out.push_back(encode(value));
  return out;
}

// ---- reading ------------------------------------------------------------------------------------

struct Node {
  const json& value;
  std::string path;

  [[noreturn]] void refuse(const std::string& what) const { throw data::FileError(path, 0, what); }
  void expect(bool is, const char* kind) const {
    if (!is) refuse(fmt::format("{}, expected {}", value.type_name(), kind));
  }
  Node at(size_t i) const { return {value[i], fmt::format("{}[{}]", path, i)}; }
};

void decode(const Node& node, int& out) {
  node.expect(node.value.is_number_integer(), "an integer");
  const bool fits = node.value.is_number_unsigned()
                        ? node.value.get<uint64_t>() <= uint64_t(std::numeric_limits<int>::max())
                        : node.value.get<int64_t>() >= std::numeric_limits<int>::min();
  if (!fits) node.refuse("out of the range of a 32-bit integer");
  out = node.value.get<int>();
}
void decode(const Node& node, bool& out) {
  node.expect(node.value.is_boolean(), "true or false");
  out = node.value.get<bool>();
}
void decode(const Node& node, double& out) {
  node.expect(node.value.is_number() || node.value.is_null(), "a number");
  out = node.value.is_null() ? std::numeric_limits<double>::quiet_NaN() : node.value.get<double>();
}
void decode(const Node& node, std::string& out) {
  node.expect(node.value.is_string(), "text");
  out = node.value.get<std::string>();
}
std::vector<uint8_t> decode_bytes(const Node& node) {
  auto bytes = from_base64(node.value.get_ref<const std::string&>());
  if (!bytes) node.refuse("not base64");
  return *std::move(bytes);
}
void decode(const Node& node, std::vector<uint8_t>& out) {
  node.expect(node.value.is_string(), "base64 text");
  out = decode_bytes(node);
}
template <class T>
requires std::is_class_v<T>
void decode(const Node& node, T& out);
template <class T>
void decode(const Node& node, std::vector<T>& out);
void decode(const Node& node, std::vector<float>& out) {
  if (node.value.is_string()) {
    const std::vector<uint8_t> bytes = decode_bytes(node);
    if (bytes.size() % sizeof(float) != 0)
      node.refuse(fmt::format("{} bytes, expected float32 numbers", bytes.size()));
    out.resize(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  node.expect(node.value.is_array(), "a list of numbers, or base64 text");
  out.resize(node.value.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!node.value[i].is_number()) node.at(i).expect(false, "a number");
    out[i] = static_cast<float>(node.value[i].get<double>());
  }
}
// There may be millions of links, so a path is made only for a link that is refused.
void decode(const Node& node, std::vector<Link>& out) {
  node.expect(node.value.is_array(), "a list of [query, key, weight]");
  out.resize(node.value.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const json& link = node.value[i];
    if (!link.is_array() || link.size() != 3 || !link[0].is_number_integer() ||
        !link[1].is_number_integer() || !link[2].is_number())
      node.at(i).refuse("expected [query, key, weight]");
    const auto query = link[0].get<int64_t>(), key = link[1].get<int64_t>();
    if (query != int32_t(query) || key != int32_t(key)) node.at(i).refuse("index out of range");
    out[i] = {int32_t(query), int32_t(key), static_cast<float>(link[2].get<double>())};
  }
}
template <class Enum>
requires std::is_enum_v<Enum>
void decode(const Node& node, Enum& out) {
  node.expect(node.value.is_string(), "text");
  const auto& text = node.value.get_ref<const std::string&>();
  for (size_t i = 0; i < std::size(Names<Enum>::kAll); ++i)
    if (text == Names<Enum>::kAll[i]) return void(out = static_cast<Enum>(i));
  node.refuse(
      fmt::format("{}, expected one of {}", data::shown(text), fmt::join(Names<Enum>::kAll, ", ")));
}
template <class T>
void decode(const Node& node, std::optional<T>& out) {
  decode(node, out.emplace());
}

struct Reader {
  const Node& node;
  std::set<std::string> known{};

  explicit Reader(const Node& n) : node(n) { node.expect(node.value.is_object(), "an object"); }
  template <class T>
  void operator()(const char* name, T& field) {
    if (!node.value.contains(name)) node.refuse(fmt::format("field '{}' missing", name));
    (*this)(name, field, T{});
  }
  template <class T>
  void operator()(const char* name, T& field, const std::type_identity_t<T>& absent) {
    known.insert(name);
    const auto found = node.value.find(name);
    if (found == node.value.end()) return void(field = absent);
    decode(Node{*found, node.path + "." + name}, field);
  }
  void refuse_unknown() const {
    for (const auto& [name, value] : node.value.items())
      if (!known.contains(name)) node.refuse("unknown field " + data::shown(name));
  }
};

template <class T>
requires std::is_class_v<T>
void decode(const Node& node, T& out) {
  Reader reader(node);
  describe(reader, out);
  reader.refuse_unknown();
}
template <class T>
void decode(const Node& node, std::vector<T>& out) {
  node.expect(node.value.is_array(), "a list");
  out.resize(node.value.size());
  for (size_t i = 0; i < out.size(); ++i) decode(node.at(i), out[i]);
}

void check_version(const Node& node) {
  node.expect(node.value.is_object(), "an object");
  if (node.value.value("format", json()) != kFormat)
    node.refuse(fmt::format("not an Explanation (\"format\": \"{}\" missing)", kFormat));
  const json version = node.value.value("version", json());
  if (version != kVersion)
    node.refuse(fmt::format("version {}, expected {}", version.dump().substr(0, 40), kVersion));
}

}  // namespace

std::string to_json(const Explanation& e) {
  check(e);
  return encode(e).dump(-1, ' ', false, json::error_handler_t::replace);
}

Explanation from_json(std::string_view text, std::string_view name) {
  const std::string path(name);
  const json parsed = data::parse_json<json>(text, path);
  const Node root{parsed, path};
  check_version(root);
  Explanation e;
  decode(root, e);
  try {
    check(e);
  } catch (const InvalidArgument& error) {
    throw data::FileError(path, 0, error.what());
  }
  return e;
}

Explanation read_explanation(const std::filesystem::path& path) {
  const std::string name = path.string(), text = data::read_bytes(name);
  if (text.size() > kMostBytes)
    throw data::FileError(name, 0,
                          fmt::format("{} bytes, at most {} allowed", text.size(), kMostBytes));
  return from_json(text, name);
}

}  // namespace fovea::explain
