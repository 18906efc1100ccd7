#include "engine/runtime/cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace fovea::engine {
namespace {

// No list of mounts is longer in practice. The limit also ends the reading of an endless file.
constexpr size_t kMostBytes = 1 << 20;
// More threads than any machine has cores.
constexpr size_t kMostThreads = 4096;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool lists(std::string_view commas, std::string_view name) {
  const auto parts = split(commas, ',');
  return std::find(parts.begin(), parts.end(), name) != parts.end();
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole =
      end != text.data() &&
      text.substr(end - text.data()).find_first_not_of(" \n") == std::string_view::npos;
  return error == std::errc() && whole ? std::optional(value) : std::nullopt;
}

// The number of cores that `quota` of every `period` microseconds amounts to; 0: no limit.
size_t cores_of(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return 0;
  const int64_t whole = *quota / *period, part = *quota % *period != 0;
  return static_cast<size_t>(std::min<int64_t>(whole + part, kMostThreads));
}

size_t smaller(size_t a, size_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

size_t version2(const std::string& folder) {
  const std::string text = contents(folder + "/cpu.max");  // "max 100000" or "150000 100000"
  const auto words = split(text, ' ');
  return words.size() == 2 ? cores_of(number(words[0]), number(words[1])) : 0;
}

size_t version1(const std::string& folder) {
  return cores_of(number(contents(folder + "/cpu.cfs_quota_us")),
                  number(contents(folder + "/cpu.cfs_period_us")));
}

// Mounted paths are written with \040 for a space and the like.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      const int code = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
      plain += static_cast<char>(code & 0xff);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// A hierarchy of control groups: where it is mounted, and from which group on.
struct Hierarchy {
  std::string group, point;
};

// Of a line of mountinfo: "31 23 0:28 /group /mount/point options - type source options".
std::optional<Hierarchy> hierarchy(std::string_view line, bool second) {
  const auto words = split(line, ' ');
  const auto dash = std::find(words.begin(), words.end(), "-");
  if (dash - words.begin() < 6 || words.end() - dash < 4) return std::nullopt;
  const bool wanted = second ? dash[1] == "cgroup2" : dash[1] == "cgroup" && lists(dash[3], "cpu");
  if (!wanted) return std::nullopt;
  return Hierarchy{unescaped(words[3]), unescaped(words[4])};
}

// The smallest limit of the group and its parents, as far as the mount shows them.
template <class Read>
size_t least(const std::string& root, const Hierarchy& mounted, std::string_view group,
             const Read& read) {
  // Seen from within a container the group may lie outside of what is mounted.
  std::string path;
  const std::string_view top = mounted.group == "/" ? "" : std::string_view(mounted.group);
  if (group.starts_with(top) && group.find("/..") == std::string_view::npos)
    path = group.substr(top.size());
  size_t cores = 0;
  for (;;) {
    cores = smaller(cores, read(root + mounted.point + path));
    const size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return cores;
    path.resize(slash);
  }
}

size_t affinity_cores() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<size_t>(std::max(1, CPU_COUNT(&set)));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

size_t quota_cores(const std::string& root) {
  const std::string mounts = contents(root + "/proc/self/mountinfo"),
                    groups = contents(root + "/proc/self/cgroup");
  size_t cores = 0;
  for (const std::string_view line : split(groups, '\n')) {  // "4:cpu,cpuacct:/a/b" or "0::/a/b"
    const size_t first = line.find(':');
    const size_t last = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (last == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, last - first - 1);
    const bool second = controllers.empty();
    if (!second && !lists(controllers, "cpu")) continue;
    for (const std::string_view mount : split(mounts, '\n')) {
      const auto mounted = hierarchy(mount, second);
      if (!mounted) continue;
      cores = smaller(cores,
                      least(root, *mounted, line.substr(last + 1), second ? version2 : version1));
    }
  }
  return cores;
}

size_t usable_cores() {
  static const size_t cores = smaller(affinity_cores(), quota_cores(""));
  return cores;
}

size_t threads_asked_for(const char* text) {
  const auto asked = text ? number(text) : std::nullopt;
  return asked && *asked > 0 ? static_cast<size_t>(std::min<int64_t>(*asked, kMostThreads)) : 0;
}

}  // namespace fovea::engine
