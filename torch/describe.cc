#include "torch/describe.h"

#include <charconv>

#include "fovea/attend.h"
#include "torch/names.h"

namespace fovea {
namespace {

std::string quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

template <class Number>
std::string number(Number value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

// A field as ["name", type, default].
struct Fields {
  std::string& text;
  const char* separator = "";

  void put(const char* name, const std::string& type, const std::string& value) {
    text += separator;
    text += '[' + quoted(name) + ", " + type + ", " + value + ']';
    separator = ", ";
  }
  void operator()(const char* name, double value) { put(name, quoted("number"), number(value)); }
  void operator()(const char* name, const std::optional<double>&) {
    put(name, quoted("number?"), "null");
  }
  void operator()(const char* name, int64_t value) { put(name, quoted("whole"), number(value)); }
  void operator()(const char* name, bool value) {
    put(name, quoted("truth"), value ? "true" : "false");
  }
  void operator()(const char* name, const at::Tensor&) { put(name, quoted("tensor"), "null"); }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(const char* name, Enum value) {
    std::string names;
    for (const char* each : names_of(value)) names += (names.empty() ? "" : ", ") + quoted(each);
    put(name, '[' + names + ']', quoted(names_of(value)[static_cast<size_t>(value)]));
  }
};

template <class... Kinds>
std::string kinds(std::variant<Kinds...>) {
  std::string text;
  const auto add = [&]<class Kind>(Kind kind) {
    if constexpr (!choice::HasParts<Kind>) {
      text +=
          (text.empty() ? "" : ", ") + ("{\"name\": " + quoted(Kind::kName)) + ", \"fields\": [";
      kind.fields(Fields{text});
      text += "]}";
    }
  };
  (add(Kinds{}), ...);
  return '[' + text + ']';
}

}  // namespace

std::string describe_choices() {
  return "{\"score\": " + kinds(Score::Kind{}) + ", \"modifier\": " + kinds(Modifier{}) +
         ", \"normaliser\": " + kinds(Normaliser{}) +
         ", \"structure\": " + kinds(choice::StructureKind<at::Tensor>{}) + "}";
}

}  // namespace fovea
