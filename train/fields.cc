#include "train/fields.h"

#include <fmt/format.h>

#include <cmath>

#include "data/files/file.h"
#include "fovea/error.h"

namespace fovea::train {

Fields::Fields(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
  if (!object.is_object())
    throw InvalidArgument(
        fmt::format("{}: expected an object, found {}", place_, data::shown(object.dump())));
}

void Fields::refuse(std::string_view name, const std::string& expected) const {
  const auto found = object_.find(std::string(name));
  throw InvalidArgument(
      fmt::format("{}{}: expected {}, found {}", place_, name, expected,
                  found == object_.end()
                      ? "nothing"
                      : data::shown(found->dump(-1, ' ', false, Json::error_handler_t::replace))));
}

bool Fields::has(std::string_view name) const { return object_.contains(std::string(name)); }

const Json& Fields::entry(std::string_view name) const {
  static const Json kNothing(Json::value_t::discarded);
  const auto found = object_.find(std::string(name));
  return found == object_.end() ? kNothing : *found;
}

bool Fields::flag(std::string_view name) const {
  const Json& value = entry(name);
  if (!value.is_boolean()) refuse(name, "true or false");
  return value.get<bool>();
}

int64_t Fields::integer(std::string_view name, int64_t least, int64_t most) const {
  const Json& value = entry(name);
  const auto described = [&] {
    if (least == std::numeric_limits<int64_t>::min()) return std::string("an integer");
    if (most == std::numeric_limits<int64_t>::max())
      return fmt::format("an integer, at least {}", least);
    return fmt::format("an integer, {} to {}", least, most);
  };
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() &&
                      value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()});
  if (!fits) refuse(name, described());
  const auto number = value.get<int64_t>();
  if (number < least || number > most) refuse(name, described());
  return number;
}

uint64_t Fields::seed(std::string_view name) const {
  const Json& value = entry(name);
  if (!value.is_number_unsigned()) refuse(name, "an integer, at least 0");
  return value.get<uint64_t>();
}

double Fields::number(std::string_view name) const {
  const double value = number_or_nan(name);
  if (!std::isfinite(value)) refuse(name, "a finite number");
  return value;
}

double Fields::number_or_nan(std::string_view name) const {
  const Json& value = entry(name);
  if (value.is_null()) return std::nan("");
  if (!value.is_number()) refuse(name, "a number");
  return value.get<double>();
}

std::string Fields::text(std::string_view name) const {
  const Json& value = entry(name);
  if (!value.is_string()) refuse(name, "text");
  return value.get<std::string>();
}

const Json& Fields::object(std::string_view name) const {
  const Json& value = entry(name);
  if (!value.is_object()) refuse(name, "an object");
  return value;
}

const Json& Fields::list(std::string_view name) const {
  const Json& value = entry(name);
  if (!value.is_array()) refuse(name, "a list");
  return value;
}

std::vector<std::string> Fields::texts(std::string_view name) const {
  std::vector<std::string> out;
  for (const Json& one : list(name)) {
    if (!one.is_string()) refuse(name, "a list of texts");
    out.push_back(one.get<std::string>());
  }
  return out;
}

std::vector<double> Fields::numbers(std::string_view name) const {
  std::vector<double> out;
  for (const Json& one : list(name)) {
    if (!one.is_number() || !std::isfinite(one.get<double>())) refuse(name, "a list of numbers");
    out.push_back(one.get<double>());
  }
  return out;
}

const std::string& file_of(const Assets& assets, const std::string& name) {
  const auto found = assets.files.find(name);
  if (found == assets.files.end())
    throw InvalidArgument(name + ": missing, expected in the run's folder");
  return found->second;
}

}  // namespace fovea::train
