// The grammar of choices as text, for any type of array. It does not include libtorch, so that a
// fuzz target can be built without it. torch/spec.h shows an example.
//
// It reads and writes the choices by their `fields`: a new field needs no change here.
#pragma once

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/choices.h"
#include "fovea/error.h"
#include "torch/names.h"

namespace fovea {

// A name that does not exist; the message lists those that do.
struct UnknownName : InvalidArgument {
  UnknownName(std::string kind, std::string typed, std::vector<std::string> names);
  std::string kind, typed;
  std::vector<std::string> names;
};

namespace choice_text {

// How to find the array, or the user's function, that a text stands for.
template <class Array>
struct Reading {
  std::function<Array(std::string_view field, std::string_view text)> array;
  std::function<choice::Custom<Array>(int64_t handle)> custom;
  std::optional<int64_t> listed = {};  // what a number written # reads as; nothing: # is no number
};
// The other way round. An array without text is a field that is left out.
template <class Array>
struct Writing {
  std::function<std::optional<std::string>(const Array&)> array;
  std::function<int64_t(const choice::Custom<Array>&)> custom;
};

std::vector<std::string_view> split(std::string_view text, char separator);

template <class Number>
Number parse_number(std::string_view field, std::string_view text, const char* expected) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InvalidArgument(std::string(field) + ": '" + std::string(text) + "', expected " +
                          expected);
  }
  return value;
}

// ---- a field from its text ----
template <class Array>
struct FieldReader {
  std::string_view field, text;
  const Reading<Array>& reading;

  void operator()(double& value) const { value = parse_number<double>(field, text, "a number"); }
  void operator()(std::optional<double>& value) const {
    value = parse_number<double>(field, text, "a number");
  }
  void operator()(int64_t& value) const {
    value = text == "#" && reading.listed ? *reading.listed
                                          : parse_number<int64_t>(field, text, "a whole number");
  }
  void operator()(Array& value) const { value = reading.array(field, text); }
  void operator()(bool& value) const {
    if (text != "true" && text != "false")
      throw UnknownName(std::string(field), std::string(text), {"true", "false"});
    value = text == "true";
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(Enum& value) const {
    const auto names = names_of(value);
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) {
      throw UnknownName(std::string(field), std::string(text), {names.begin(), names.end()});
    }
    value = static_cast<Enum>(found - names.begin());
  }
};

template <class Array>
void parse_fields(choice::Custom<Array>& kind, std::string_view text,
                  const Reading<Array>& reading) {
  constexpr std::string_view kPrefix = "handle=";
  if (!text.starts_with(kPrefix))
    throw InvalidArgument("custom: a user's function can be named in C++ only");
  kind = reading.custom(
      parse_number<int64_t>("custom.handle", text.substr(kPrefix.size()), "a handle"));
}

template <class Kind, class Array>
void parse_fields(Kind& kind, std::string_view text, const Reading<Array>& reading) {
  std::vector<std::string> names, given;
  kind.fields([&](const char* name, auto&) { names.push_back(name); });
  for (const std::string_view part :
       text.empty() ? std::vector<std::string_view>{} : split(text, ',')) {
    const size_t equals = part.find('=');
    const std::string name(part.substr(0, equals));
    const std::string full = std::string(Kind::kName) + "." + name;
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw UnknownName("field of " + std::string(Kind::kName), name, names);
    }
    if (equals == std::string_view::npos)
      throw InvalidArgument(full + ": no value, expected " + name + "=VALUE");
    if (std::find(given.begin(), given.end(), name) != given.end())
      throw InvalidArgument(full + ": given twice, expected once");
    given.push_back(name);
    kind.fields([&](const char* field, auto& value) {
      if (name == field) FieldReader<Array>{full, part.substr(equals + 1), reading}(value);
    });
  }
}

// "name:field=value,..." as one of a variant's kinds.
template <class Array, class... Kinds>
std::variant<Kinds...> parse_kind(std::variant<Kinds...>, const char* what, std::string_view text,
                                  const Reading<Array>& reading) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view fields =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  std::optional<std::variant<Kinds...>> result;
  std::vector<std::string> names;
  const auto try_kind = [&]<class Kind>(Kind kind) {
    if constexpr (!choice::HasParts<Kind>) {  // which are written with | and ~
      names.push_back(Kind::kName);
      if (result || name != Kind::kName) return;
      parse_fields(kind, fields, reading);
      result.emplace(std::move(kind));
    }
  };
  (try_kind(Kinds{}), ...);
  if (!result) throw UnknownName(what, std::string(name), std::move(names));
  return *std::move(result);
}

template <class Array>
choice::Score<Array> parse_score(std::string_view text, const Reading<Array>& reading) {
  const auto parts = split(text, '|');
  choice::Score<Array> score;
  score.kind = parse_kind(typename choice::Score<Array>::Kind{}, "score", parts[0], reading);
  for (size_t n = 1; n < parts.size(); ++n) {
    score.modifiers.push_back(parse_kind(choice::Modifier<Array>{}, "modifier", parts[n], reading));
  }
  return score;
}

template <class Array>
choice::Normaliser<Array> parse_normaliser(std::string_view text, const Reading<Array>& reading) {
  return parse_kind(choice::Normaliser<Array>{}, "normaliser", text, reading);
}

// Structures: a kind, ~a, a & b, a | b, (a), binding in this order, closest first. A term ends at an
// operator or at a bracket that it has not opened: a file's name may hold brackets in pairs.
template <class Array>
class StructureReader {
 public:
  StructureReader(std::string_view text, const Reading<Array>& reading)
      : text_(text), reading_(reading) {}

  choice::Structure<Array> all() {
    auto structure = either();
    if (at_ < text_.size()) fail("expected & or |");
    return structure;
  }

 private:
  choice::Structure<Array> either() {
    auto structure = both();
    while (take('|')) structure = structure | both();
    return structure;
  }
  choice::Structure<Array> both() {
    auto structure = one();
    while (take('&')) structure = structure & one();
    return structure;
  }
  choice::Structure<Array> one() {
    constexpr int kDeepest = 64;  // a text, and not the stack, sets the end
    if (++depth_ > kDeepest) fail("more than 64 brackets and ~ inside each other");
    auto structure = take('~') ? ~one() : take('(') ? bracket() : kind();
    --depth_;
    return structure;
  }
  choice::Structure<Array> bracket() {
    auto structure = either();
    if (!take(')')) fail("expected )");
    return structure;
  }
  choice::Structure<Array> kind() {
    const size_t from = at_;
    int open = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (open == 0 && (c == '&' || c == '|' || c == ')')) break;
      open += (c == '(') - (c == ')');
    }
    if (open > 0) fail("expected a ) for every ( of a name");
    choice::Structure<Array> structure;
    structure.all_of.push_back(parse_kind(choice::StructureKind<Array>{}, "structure",
                                          trim(text_.substr(from, at_ - from)), reading_));
    return structure;
  }

  static std::string_view trim(std::string_view text) {
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
  }
  bool take(char c) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return true;
  }
  [[noreturn]] void fail(const char* why) const {
    throw InvalidArgument("structure: '" + std::string(text_) + "', " + why + " at character " +
                          std::to_string(at_ + 1));
  }

  const std::string_view text_;
  const Reading<Array>& reading_;
  size_t at_ = 0;
  int depth_ = 0;
};

template <class Array>
choice::Structure<Array> parse_structure(std::string_view text, const Reading<Array>& reading) {
  return StructureReader<Array>(text, reading).all();
}

// ---- a choice to its text ----
template <class Array>
struct Writer {
  const Writing<Array>& writing;
  std::string text = {};
  const char* separator = ":";

  void start(const char* name) {
    text += name;
    separator = ":";
  }
  void put(const char* field, std::string_view value) {
    ((text += separator) += field) += '=';
    text += value;
    separator = ",";
  }
  template <class Number>
  void put_number(const char* field, Number value) {
    char buffer[32];
    put(field, {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr});
  }
  void operator()(const char* field, double value) { put_number(field, value); }
  void operator()(const char* field, int64_t value) { put_number(field, value); }
  void operator()(const char* field, bool value) { put(field, value ? "true" : "false"); }
  void operator()(const char* field, const std::optional<double>& value) {
    if (value) put_number(field, *value);
  }
  void operator()(const char* field, const Array& value) {
    if (const auto place = writing.array(value)) put(field, *place);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(const char* field, Enum value) {
    put(field, names_of(value)[static_cast<size_t>(value)]);
  }

  void write(choice::Custom<Array> kind) {
    start(kind.kName);
    put_number("handle", writing.custom(kind));
  }
  template <class Kind>
  void write(Kind kind) {
    start(Kind::kName);
    kind.fields(*this);
  }
  void write_structure(const choice::Structure<Array>& structure) {
    if (structure.all_of.empty()) start(choice::Dense<Array>::kName);
    for (const auto& one : structure.all_of) {
      if (&one != structure.all_of.data()) text += '&';
      write_kind(one);
    }
  }
  void write(const choice::AnyOf<Array>& any) {
    for (const auto& part : any.parts) {
      text += &part == any.parts.data() ? '(' : '|';
      write_structure(part);
    }
    text += ')';
  }
  void write(const choice::Not<Array>& complement) {
    for (const auto& part : complement.parts) {
      text += "~(";
      write_structure(part);
      text += ')';
    }
  }
  template <class Variant>
  void write_kind(const Variant& variant) {
    std::visit([this](const auto& kind) { this->write(kind); }, variant);
  }
};

template <class Array>
std::string write_score(const choice::Score<Array>& score, const Writing<Array>& writing) {
  Writer<Array> writer{writing};
  writer.write_kind(score.kind);
  for (const auto& modifier : score.modifiers) {
    writer.text += '|';
    writer.write_kind(modifier);
  }
  return std::move(writer.text);
}

template <class Array>
std::string write_normaliser(const choice::Normaliser<Array>& normaliser,
                             const Writing<Array>& writing) {
  Writer<Array> writer{writing};
  writer.write_kind(normaliser);
  return std::move(writer.text);
}

template <class Array>
std::string write_structure(const choice::Structure<Array>& structure,
                            const Writing<Array>& writing) {
  Writer<Array> writer{writing};
  writer.write_structure(structure);
  return std::move(writer.text);
}

}  // namespace choice_text
}  // namespace fovea
