#include "train/option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "data/nearest.h"

namespace fovea {
namespace {

template <class T>
std::optional<T> parsed(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<Option::Value> parse(const Option& option, std::string_view text) {
  if (std::holds_alternative<bool>(option.fallback)) {
    if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
    if (text == "false" || text == "0" || text == "no" || text == "off") return false;
    return std::nullopt;
  }
  if (std::holds_alternative<int64_t>(option.fallback)) {
    const auto value = parsed<int64_t>(text);
    if (value) return *value;
    return std::nullopt;
  }
  if (std::holds_alternative<double>(option.fallback)) {
    const auto value = parsed<double>(text);
    if (value && std::isfinite(*value)) return *value;
    return std::nullopt;
  }
  return std::string(text);
}

// Nothing if the value has another type.
std::optional<Option::Value> value_in(const Option& option, const nlohmann::ordered_json& value) {
  return std::visit(
      [&]<class T>(const T&) -> std::optional<Option::Value> {
        const bool fits = std::is_same_v<T, bool>      ? value.is_boolean()
                          : std::is_same_v<T, int64_t> ? value.is_number_integer()
                          : std::is_same_v<T, double>  ? value.is_number()
                                                       : value.is_string();
        if (!fits) return std::nullopt;
        return value.template get<T>();
      },
      option.fallback);
}

bool in_range(const Option& option, const Option::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    return option.choices.empty() ||
           std::find(option.choices.begin(), option.choices.end(), *text) != option.choices.end();
  double number = 0;
  if (const auto* integer = std::get_if<int64_t>(&value)) number = static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  return number >= option.least.value_or(number) && number <= option.most.value_or(number);
}

}  // namespace

std::vector<Option> joined(std::vector<Option> own, std::vector<Option> shared,
                           std::string_view about) {
  for (Option& one : shared) {
    one.help.insert(0, about);
    own.push_back(std::move(one));
  }
  return own;
}

Option::Option(std::string n, bool f, std::string h)
    : name(std::move(n)), fallback(f), help(std::move(h)) {}
Option::Option(std::string n, int64_t f, std::string h)
    : name(std::move(n)), fallback(f), help(std::move(h)) {}
Option::Option(std::string n, int f, std::string h)
    : name(std::move(n)), fallback(int64_t{f}), help(std::move(h)) {}
Option::Option(std::string n, double f, std::string h)
    : name(std::move(n)), fallback(f), help(std::move(h)) {}
Option::Option(std::string n, const char* f, std::string h)
    : name(std::move(n)), fallback(std::string(f)), help(std::move(h)) {}

Option Option::at_least(double low) && {
  least = low;
  return std::move(*this);
}
Option Option::between(double low, double high) && {
  least = low;
  most = high;
  return std::move(*this);
}
Option Option::during(std::vector<Use> chosen) && {
  uses = std::move(chosen);
  return std::move(*this);
}
Option Option::among(std::vector<std::string> names) && {
  choices = std::move(names);
  return std::move(*this);
}

const char* name_of(Use use) {
  return use == Use::kEvaluate ? "evaluate" : use == Use::kPredict ? "predict" : "explain";
}

std::string Option::describe_type() const {
  if (!choices.empty()) return fmt::format("one of {}", fmt::join(choices, ", "));
  std::string type = std::holds_alternative<bool>(fallback)      ? "true or false"
                     : std::holds_alternative<int64_t>(fallback) ? "an integer"
                     : std::holds_alternative<double>(fallback)  ? "a number"
                                                                 : "text";
  if (least && most) return type + fmt::format(", {} to {}", *least, *most);
  if (least) return type + fmt::format(", at least {}", *least);
  return type;
}

OptionValues::OptionValues(std::vector<Option> declared)
    : declared_(std::move(declared)), values_(declared_.size()), given_(declared_.size()) {
  for (size_t i = declared_.size(); i-- > 0;) {
    for (size_t j = i; j-- > 0;) {  // the nearest: of three declarations the last must win
      if (declared_[j].name != declared_[i].name) continue;
      declared_[j] = std::move(declared_[i]);
      declared_.erase(declared_.begin() + static_cast<ptrdiff_t>(i));
      values_.pop_back();
      given_.pop_back();
      break;
    }
  }
}

size_t OptionValues::index(std::string_view name) const {
  for (size_t i = 0; i < declared_.size(); ++i)
    if (declared_[i].name == name) return i;
  std::vector<std::string> names;
  for (const Option& option : declared_) names.push_back(option.name);
  throw UsageError(fmt::format("--set {}: no such option{}; the options are {}", name,
                               data::did_you_mean(name, names), fmt::join(names, ", ")));
}

void OptionValues::set(std::string_view assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw UsageError(fmt::format("--set {}: expected name=value", assignment));
  set(assignment.substr(0, equals), assignment.substr(equals + 1));
}

void OptionValues::set(std::string_view name, std::string_view text) {
  const size_t i = index(name);
  const Option& option = declared_[i];
  const auto value = parse(option, text);
  if (!value || !in_range(option, *value))
    throw UsageError(fmt::format("--set {}={}: expected {}{}", name, text, option.describe_type(),
                                 data::did_you_mean(text, option.choices)));
  if (given_[i]) throw UsageError(fmt::format("--set {}={}: {} is given twice", name, text, name));
  given_[i] = true;
  values_[i] = *value;
}

void OptionValues::set_for(Use use, std::string_view assignment) {
  const std::string_view name = assignment.substr(0, assignment.find('='));
  const auto allows = [&](const Option& option) {
    return std::find(option.uses.begin(), option.uses.end(), use) != option.uses.end();
  };
  if (assignment.find('=') != std::string_view::npos && !allows(declared_[index(name)])) {
    std::vector<std::string> names;
    for (const Option& option : declared_)
      if (allows(option)) names.push_back(option.name);
    throw UsageError(fmt::format(
        "--set {}: fixed when the run was trained; {} may change {}", assignment, name_of(use),
        names.empty() ? "nothing of this system" : fmt::format("{}", fmt::join(names, ", "))));
  }
  set(assignment);
}

bool OptionValues::is_set(std::string_view name) const { return values_[index(name)].has_value(); }

const Option::Value& OptionValues::value(std::string_view name) const {
  const size_t i = index(name);
  return values_[i] ? *values_[i] : declared_[i].fallback;
}

bool OptionValues::flag(std::string_view name) const { return std::get<bool>(value(name)); }
int64_t OptionValues::integer(std::string_view name) const {
  return std::get<int64_t>(value(name));
}
double OptionValues::number(std::string_view name) const {
  const Option::Value& v = value(name);
  if (const auto* integer = std::get_if<int64_t>(&v)) return static_cast<double>(*integer);
  return std::get<double>(v);
}
const std::string& OptionValues::text(std::string_view name) const {
  return std::get<std::string>(value(name));
}

std::vector<std::string> OptionValues::list(std::string_view name) const {
  std::vector<std::string> items;
  std::string_view rest = text(name);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    items.emplace_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return items;
}

nlohmann::ordered_json OptionValues::json() const {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (size_t i = 0; i < declared_.size(); ++i)
    std::visit([&](const auto& v) { out[declared_[i].name] = v; },
               values_[i] ? *values_[i] : declared_[i].fallback);
  return out;
}

void OptionValues::restore(const nlohmann::ordered_json& values) {
  for (const auto& [name, value] : values.items()) {
    const size_t i = index(name);
    const auto restored = value_in(declared_[i], value);
    if (!restored || !in_range(declared_[i], *restored))
      throw InvalidArgument(fmt::format("option {}: expected {}, got {}", name,
                                        declared_[i].describe_type(), value.dump()));
    values_[i] = restored;
  }
}

}  // namespace fovea
