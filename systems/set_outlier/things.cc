#include "systems/set_outlier/things.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "data/file.h"

namespace fovea::systems::set_outlier {
namespace {

std::string_view without_spaces_around(std::string_view text) {
  const size_t from = text.find_first_not_of(' ');
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(' ') - from + 1);
}

// Each once, in order of the alphabet.
std::vector<std::string> trimmed(const std::vector<std::string>& things) {
  std::vector<std::string> out;
  for (const std::string& thing : things)
    if (const std::string_view name = without_spaces_around(thing); !name.empty())
      out.emplace_back(name);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

std::vector<std::string> trimmed_things(std::string_view line) {
  return trimmed(data::things_of_line(line));
}

std::vector<std::vector<std::string>> named(const data::ItemSets& sets) {
  std::vector<std::vector<std::string>> out;
  for (const auto& set : sets.sets) {
    auto& one = out.emplace_back();
    for (const int64_t thing : set) one.push_back(sets.names[static_cast<size_t>(thing)]);
  }
  return out;
}

data::ItemSets read_things(const std::string& path) {
  data::ItemSets found = data::read_item_sets(path);
  if (std::all_of(found.names.begin(), found.names.end(), [](const std::string& name) {
        return without_spaces_around(name).size() == name.size();
      }))
    return found;
  // Names that differed by spaces are one: counted and numbered again.
  std::vector<std::vector<std::string>> things = named(found);
  std::map<std::string, int64_t> counts;
  for (auto& set : things) {
    set = trimmed(set);
    for (const std::string& thing : set) ++counts[thing];
  }
  data::ItemSets out;
  for (const auto& [name, count] : counts) out.names.push_back(name);
  if (out.names.size() < 3)
    throw data::FileError(
        path, 0, fmt::format("{} different things, expected at least 3", out.names.size()));
  std::stable_sort(
      out.names.begin(), out.names.end(),
      [&](const std::string& a, const std::string& b) { return counts[a] > counts[b]; });
  out.sets = data::item_sets_of(things, out.names).sets;
  return out;
}

std::string shown_set(std::string_view line) {
  std::string out;
  for (const char c : line) {
    if (c == '|') {
      while (out.ends_with(' ')) out.pop_back();
      out += ", ";
    } else if (c != ' ' || !out.ends_with(' ')) {
      out += c;
    }
  }
  return out;
}

std::string ordinal(int64_t rank) {
  const int64_t last = rank % 10;
  const bool teen = rank / 10 % 10 == 1;
  return fmt::format("{}{}", rank,
                     teen        ? "th"
                     : last == 1 ? "st"
                     : last == 2 ? "nd"
                     : last == 3 ? "rd"
                                 : "th");
}

}  // namespace fovea::systems::set_outlier
