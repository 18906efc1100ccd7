#include "torch/spec.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "torch/call.h"
#include "torch/custom_table.h"
#include "torch/names.h"

namespace fovea {
namespace {

// A whole number that the text leaves to a list.
constexpr int64_t kListed = std::numeric_limits<int64_t>::min();

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    const size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

// ---- a field from its text ----
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

struct Parser {
  std::string_view field, text;
  const Resolve& resolve;

  void operator()(double& value) const { value = parse_number<double>(field, text, "a number"); }
  void operator()(std::optional<double>& value) const {
    value = parse_number<double>(field, text, "a number");
  }
  void operator()(int64_t& value) const {
    value = text == "#" ? kListed : parse_number<int64_t>(field, text, "a whole number");
  }
  void operator()(at::Tensor& value) const { value = resolve(field, text); }
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

void parse_fields(Custom& kind, std::string_view text, const Resolve&) {
  constexpr std::string_view kPrefix = "handle=";
  if (!text.starts_with(kPrefix))
    throw InvalidArgument("custom: a user's function can be named in C++ only");
  kind = custom_of(parse_number<int64_t>("custom.handle", text.substr(kPrefix.size()), "a handle"));
}

template <class Kind>
void parse_fields(Kind& kind, std::string_view text, const Resolve& resolve) {
  std::vector<std::string> names;
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
    kind.fields([&](const char* field, auto& value) {
      if (name == field) Parser{full, part.substr(equals + 1), resolve}(value);
    });
  }
}

// "name:field=value,..." as one of a variant's kinds.
template <class... Kinds>
std::variant<Kinds...> parse_kind(std::variant<Kinds...>, const char* what, std::string_view text,
                                  const Resolve& resolve) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view fields =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  std::optional<std::variant<Kinds...>> result;
  const auto try_kind = [&]<class Kind>(Kind kind) {
    if (result || name != Kind::kName) return;
    parse_fields(kind, fields, resolve);
    result.emplace(std::move(kind));
  };
  (try_kind(Kinds{}), ...);
  if (!result) throw UnknownName(what, std::string(name), {Kinds::kName...});
  return *std::move(result);
}

// ---- a choice to its text ----
struct Writer {
  Flat& flat;
  const char* separator = ":";

  void start(const char* name) {
    flat.text += name;
    separator = ":";
  }
  void put(const char* field, std::string_view value) {
    ((flat.text += separator) += field) += '=';
    flat.text += value;
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
  void operator()(const char* field, const at::Tensor& value) {
    if (!value.defined()) return;
    put(field, "@");
    flat.arrays.push_back(value);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(const char* field, Enum value) {
    put(field, names_of(value)[static_cast<size_t>(value)]);
  }

  void write(Custom kind) {
    start(Custom::kName);
    put_number("handle", custom_handle(kind));
  }
  template <class Kind>
  void write(Kind kind) {
    start(Kind::kName);
    kind.fields(*this);
  }
  template <class Variant>
  void write_kind(const Variant& variant) {
    std::visit([this](const auto& kind) { this->write(kind); }, variant);
  }
};

}  // namespace

UnknownName::UnknownName(std::string kind_, std::string typed_, std::vector<std::string> names_)
    : InvalidArgument([&] {
        std::string message = kind_ + ": unknown '" + typed_ + "', expected one of";
        for (const auto& name : names_) message += (&name == names_.data() ? " " : ", ") + name;
        return names_.empty() ? kind_ + ": unknown '" + typed_ + "', expected none" : message;
      }()),
      kind(std::move(kind_)),
      typed(std::move(typed_)),
      names(std::move(names_)) {}

Score parse_score(std::string_view text, const Resolve& resolve) {
  const auto parts = split(text, '|');
  Score score;
  score.kind = parse_kind(Score::Kind{}, "score", parts[0], resolve);
  for (size_t n = 1; n < parts.size(); ++n) {
    score.modifiers.push_back(parse_kind(Modifier{}, "modifier", parts[n], resolve));
  }
  return score;
}

Normaliser parse_normaliser(std::string_view text, const Resolve& resolve) {
  return parse_kind(Normaliser{}, "normaliser", text, resolve);
}

Structure parse_structure(std::string_view text, const Resolve& resolve) {
  Structure structure;
  for (const auto part : split(text, '&')) {
    structure.all_of.push_back(
        parse_kind(choice::StructureKind<at::Tensor>{}, "structure", part, resolve));
  }
  return structure;
}

Flat flatten(const Choices& choices) {
  Flat flat;
  Writer writer{flat};
  writer.write_kind(choices.score.kind);
  for (const auto& modifier : choices.score.modifiers) {
    flat.text += '|';
    writer.write_kind(modifier);
  }
  flat.text += ';';
  writer.write_kind(choices.normaliser);
  flat.text += ';';
  if (choices.structure.all_of.empty()) flat.text += Dense::kName;
  for (const auto& structure : choices.structure.all_of) {
    if (&structure != choices.structure.all_of.data()) flat.text += '&';
    writer.write_kind(structure);
  }
  return flat;
}

namespace {

// Choices that say where tensors and numbers of the lists go: a tensor that holds nothing, kListed.
Choices parse_operator(std::string_view text) {
  const auto parts = split(text, ';');
  if (parts.size() != 3) {
    throw InvalidArgument("choices: '" + std::string(text) +
                          "', expected 'score;normaliser;structure'");
  }
  const Resolve resolve = [](std::string_view field, std::string_view place) {
    if (place != "@")
      throw InvalidArgument(std::string(field) + ": '" + std::string(place) + "', expected @");
    // Not through the dispatcher: a trace would make it one of its own tensors.
    static const at::Tensor& holds_nothing =
        *new at::Tensor(at::detail::empty_cpu({0}, at::kFloat));
    return holds_nothing;
  };
  return {parse_score(parts[0], resolve), parse_normaliser(parts[1], resolve),
          parse_structure(parts[2], resolve)};
}

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

// A program has few texts, and reads the same ones again at every call.
constexpr size_t kRemembered = 256;

const Choices& remembered(std::string_view text) {
  thread_local std::unordered_map<std::string, Choices, TextHash, std::equal_to<>> known;
  if (const auto found = known.find(text); found != known.end()) return found->second;
  Choices parsed = parse_operator(text);
  if (known.size() >= kRemembered) known.clear();
  return known.emplace(text, std::move(parsed)).first->second;
}

void check_count(const char* name, size_t given, size_t expected) {
  if (given == expected) return;
  throw InvalidArgument(std::string(name) + ": " + std::to_string(given) + " given, expected " +
                        std::to_string(expected) + " (those the choices name)");
}

}  // namespace

Choices unflatten(std::string_view text, at::TensorList arrays, c10::SymIntArrayRef numbers) {
  Choices choices = remembered(text);
  size_t array = 0, number = 0;
  visit_fields(choices, [&](const char*, auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, at::Tensor>) {
      if (!field.defined()) return;
      if (array < arrays.size()) field = arrays[array];
      ++array;
    } else if constexpr (std::is_same_v<Field, int64_t>) {
      if (field != kListed) return;
      if (number < numbers.size()) field = numbers[number].maybe_as_int().value_or(0);
      ++number;
    }
  });
  check_count("arrays", arrays.size(), array);
  check_count("numbers", numbers.size(), number);
  return choices;
}

}  // namespace fovea
