// What a user may set with `--set name=value`: each option is declared once, with type, default,
// help and range.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "train/usage_error.h"

namespace fovea {

// What a run is used for once it is trained.
enum class Use { kEvaluate, kPredict, kExplain };
const char* name_of(Use);

struct Option {
  using Value = std::variant<bool, int64_t, double, std::string>;

  std::string name;
  Value fallback;  // the default; its type is the option's type
  std::string help;
  std::optional<double> least, most;  // of a number, both allowed
  std::vector<std::string> choices;   // of a text; empty: any
  std::vector<Use> uses;              // that may change it; training always may

  Option(std::string name, bool fallback, std::string help);
  Option(std::string name, int64_t fallback, std::string help);
  Option(std::string name, int fallback, std::string help);
  Option(std::string name, double fallback, std::string help);
  Option(std::string name, const char* fallback, std::string help);

  Option at_least(double low) &&;
  Option between(double low, double high) &&;
  Option among(std::vector<std::string> names) &&;
  // The value may also be changed for these uses: the weights do not depend on it.
  Option during(std::vector<Use> uses) &&;

  // "integer, 1 to 100", "one of gaussian, box"
  std::string describe_type() const;
};

// The options `own`, and after them `shared`, whose help begins with `about` ("pictures: ").
std::vector<Option> joined(std::vector<Option> own, std::vector<Option> shared,
                           std::string_view about = "");

// The options of one run and their values. A later declaration of a name replaces an earlier one, so
// that a system can change the default of a shared option.
class OptionValues {
 public:
  explicit OptionValues(std::vector<Option> declared);

  // Takes "name=value". UsageError on an unknown name (the message has the nearest one), a value of
  // another type or out of range, or a name that was given before.
  void set(std::string_view assignment);
  void set(std::string_view name, std::string_view value);
  // The same, for one use of a finished run, which may change some options only.
  void set_for(Use use, std::string_view assignment);
  // Whether the user chose a value.
  bool is_set(std::string_view name) const;

  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  // A text split at commas; an empty text has no items.
  std::vector<std::string> list(std::string_view name) const;

  const std::vector<Option>& declared() const { return declared_; }
  // {"name": value, …}, every option, in the order declared.
  nlohmann::ordered_json json() const;
  // Values of an earlier run; one that is unknown or of another type is refused.
  void restore(const nlohmann::ordered_json& values);

 private:
  size_t index(std::string_view name) const;
  const Option::Value& value(std::string_view name) const;

  std::vector<Option> declared_;
  std::vector<std::optional<Option::Value>> values_;
  std::vector<bool> given_;  // by set
};

}  // namespace fovea
