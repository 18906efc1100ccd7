#include "data/formats/item_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/random.h"

namespace fovea::data {
namespace {

ItemSets numbered(const std::vector<std::vector<std::string>>& things) {
  std::map<std::string, int64_t> counts;
  for (const auto& set : things)
    for (const std::string& thing : set) ++counts[thing];
  ItemSets out;
  for (const auto& [name, count] : counts) out.names.push_back(name);
  std::stable_sort(
      out.names.begin(), out.names.end(),
      [&](const std::string& a, const std::string& b) { return counts[a] > counts[b]; });
  out.sets = item_sets_of(things, out.names).sets;
  return out;
}

}  // namespace

std::vector<std::string> things_of_line(std::string_view line) {
  const size_t tab = line.rfind('\t');
  if (tab != std::string_view::npos) line.remove_prefix(tab + 1);
  std::vector<std::string> out;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find('|', at), line.size());
    if (const auto thing = trimmed(line.substr(at, end - at)); !thing.empty())
      out.emplace_back(thing);
    at = end + 1;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

KnownSets item_sets_of(const std::vector<std::vector<std::string>>& things,
                       const std::vector<std::string>& names) {
  std::map<std::string, int64_t> numbers;
  for (size_t i = 0; i < names.size(); ++i) numbers[names[i]] = static_cast<int64_t>(i);
  KnownSets out;
  for (const auto& set : things) {
    auto& one = out.sets.emplace_back();
    for (const std::string& thing : set) {
      const auto found = numbers.find(thing);
      if (found == numbers.end())
        ++out.unknown;
      else
        one.push_back(found->second);
    }
    std::sort(one.begin(), one.end());
    one.erase(std::unique(one.begin(), one.end()), one.end());
  }
  return out;
}

ItemSets read_item_sets(const std::string& path) {
  std::vector<std::vector<std::string>> things;
  const std::string text = read_file(path);
  each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    if (content.empty()) return;
    things.push_back(things_of_line(content));
    if (things.back().empty())
      throw FileError(path, line, "an empty set, expected things between '|' in the last field");
  });
  ItemSets out = numbered(things);
  if (out.names.size() < 3)
    throw FileError(path, 0,
                    fmt::format("{} different things, expected at least 3", out.names.size()));
  return out;
}

ItemSets generate_topics(int64_t sets, int64_t topics, uint64_t seed) {
  constexpr uint64_t kWords = 10, kCommon = 8;
  Random random(mix(seed, 0x70F1));
  std::vector<std::vector<std::string>> things;
  for (int64_t i = 0; i < sets; ++i) {
    const uint64_t topic = random.below(static_cast<uint64_t>(topics)), size = 4 + random.below(5),
                   common = random.below(3);
    std::vector<std::string> set;
    while (set.size() < size + common) {
      const std::string word = set.size() < size
                                   ? fmt::format("t{}w{}", topic, random.below(kWords))
                                   : fmt::format("common{}", random.below(kCommon));
      if (std::find(set.begin(), set.end(), word) == set.end()) set.push_back(word);
    }
    things.push_back(std::move(set));
  }
  return numbered(things);
}

}  // namespace fovea::data
