// JSON from other programs. Every reader parses it here. Copying, comparing and printing a value
// recurse once for each level of nesting, so that a file of nothing but brackets would crash the
// process.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fovea::data {

using Json = nlohmann::ordered_json;

inline constexpr size_t kDeepestJson = 100;

// Whether brackets outside of strings nest at most kDeepestJson deep; says nothing else about the
// text.
bool json_is_shallow(std::string_view text);

// The value; `is_discarded()` where the text is not JSON or nests too deeply.
template <class Value = Json>
Value json_in(std::string_view text) {
  if (!json_is_shallow(text)) return Value(Value::value_t::discarded);
  return Value::parse(text, nullptr, /*allow_exceptions=*/false);
}

[[noreturn]] void refuse_json(std::string_view text, const std::string& path, size_t byte);
[[noreturn]] void refuse_number(const std::string& path);

// The same for a file that is JSON as a whole. FileError says what the file is instead.
template <class Value = Json>
Value parse_json(std::string_view text, const std::string& path) {
  if (!json_is_shallow(text)) refuse_json(text, path, 0);
  try {
    return Value::parse(text);
  } catch (const typename Value::parse_error& error) {
    refuse_json(text, path, error.byte);
  } catch (const typename Value::out_of_range&) {
    refuse_number(path);
  }
}

}  // namespace fovea::data
