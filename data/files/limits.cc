#include "data/files/limits.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <vector>

#include "data/nearest.h"
#include "fovea/error.h"

namespace fovea::data {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

constexpr std::array<LimitInfo, 6> kInfos = {{
    {"file", "bytes", "of one input, unpacked"},
    {"line", "bytes", "of one line"},
    {"items", "items", "of one file: lines, rows"},
    {"sentence", "tokens",
     "of a sentence to translate, to align or to ask about, of a row or a sequence"},
    {"document", "tokens", "of a text to classify"},
    {"weights", "bytes", "of a model's weights"},
}};
using Values = std::array<uint64_t, kInfos.size()>;

// Training needs a model four times: weights, gradients and Adam's two moments. A file is held as
// bytes and as items.
Values defaults() {
  const uint64_t quarter = memory_of_machine() / 4;
  return {std::min(4 * kGiB, quarter), 16 * kMiB, 10'000'000, 4'096, 1'000'000,
          std::min(2 * kGiB, quarter)};
}

std::optional<uint64_t> parse_size(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.empty()) return value;
  const uint64_t factor = unit[0] == 'K' ? kKiB : unit[0] == 'M' ? kMiB : unit[0] == 'G' ? kGiB : 0;
  unit.remove_prefix(1);
  if (factor == 0 || (!unit.empty() && unit != "iB") || value > (uint64_t{1} << 62) / factor)
    return std::nullopt;
  return value * factor;
}

Values parse(std::string_view text) {
  Values values = defaults();
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t equals = std::min(one.find('='), one.size());
    const std::string name(one.substr(0, equals));
    const auto found = std::find_if(kInfos.begin(), kInfos.end(),
                                    [&](const LimitInfo& info) { return info.name == name; });
    if (found == kInfos.end()) {
      std::vector<std::string> names;
      std::string listed;
      for (const LimitInfo& info : kInfos) {
        names.emplace_back(info.name);
        listed += (listed.empty() ? "" : ", ") + names.back();
      }
      throw InvalidArgument(fmt::format("FOVEA_LIMITS: no limit '{}'{}; the limits are {}", name,
                                        did_you_mean(name, names), listed));
    }
    const auto value =
        equals < one.size() ? parse_size(one.substr(equals + 1)) : std::optional<uint64_t>();
    if (!value || *value == 0)
      throw InvalidArgument(fmt::format(
          "FOVEA_LIMITS: '{}': expected {}=NUMBER, at least 1, with K, M or G", one, name));
    values[static_cast<size_t>(found - kInfos.begin())] = *value;
  }
  return values;
}

Values& values() {
  static Values current = [] {
    const char* text = std::getenv("FOVEA_LIMITS");
    return parse(text ? text : "");
  }();
  return current;
}

// The limit of the control group the process is in, or nothing.
std::optional<uint64_t> group_memory() {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    if (uint64_t value = 0; file >> value) return value;
  }
  return std::nullopt;
}

}  // namespace

const LimitInfo& info_of(Limit which) { return kInfos[static_cast<size_t>(which)]; }
std::span<const LimitInfo> all_limits() { return kInfos; }

uint64_t limit(Limit which) { return values()[static_cast<size_t>(which)]; }
void set_limits(std::string_view text) { values() = parse(text); }

std::string in_unit(Limit which, uint64_t value) {
  if (info_of(which).unit != "bytes") return std::to_string(value);
  for (const auto& [size, name] : {std::pair(kGiB, "GiB"), {kMiB, "MiB"}, {kKiB, "KiB"}})
    if (value >= size && value % size == 0) return fmt::format("{} {}", value / size, name);
  if (value >= 10 * kMiB) return fmt::format("{} MiB", value / kMiB);
  return fmt::format("{} bytes", value);
}

std::string beyond(Limit which) {
  const LimitInfo& info = info_of(which);
  std::string twice = in_unit(which, 2 * limit(which));
  std::erase(twice, ' ');
  if (twice.ends_with("bytes")) twice.resize(twice.size() - 5);
  const std::string unit = info.unit == "bytes" ? "" : " " + std::string(info.unit);
  return fmt::format("more than {}{}, the limit `{}` (FOVEA_LIMITS={}={} sets another)",
                     in_unit(which, limit(which)), unit, info.name, info.name, twice);
}

std::string beyond(Limit which, uint64_t found) {
  return fmt::format("{} {}, {}", found, info_of(which).unit, beyond(which));
}
void check_count(Limit which, uint64_t found) {
  if (found > limit(which)) throw InvalidArgument(beyond(which, found));
}

uint64_t memory_of_machine() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  const uint64_t all =
      pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : 8 * kGiB;
  return std::min(all, group_memory().value_or(all));
}

}  // namespace fovea::data
