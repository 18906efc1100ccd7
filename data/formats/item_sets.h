// Sets of named things: recipes and their ingredients, topics and their words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::data {

struct ItemSets {
  std::vector<std::string> names;          // of the things, by falling count, then by name
  std::vector<std::vector<int64_t>> sets;  // numbers of things, ascending, each once
};

// One set on a line. Its last tab-separated field has the things, separated by '|'
// (`id<TAB>cuisine<TAB>salt|pepper`); earlier fields are not read. A thing that occurs twice counts
// once.
ItemSets read_item_sets(const std::string& path);
// The same lines, with known names; unknown things are left out and counted.
struct KnownSets {
  std::vector<std::vector<int64_t>> sets;
  int64_t unknown = 0;
};
KnownSets item_sets_of(const std::vector<std::vector<std::string>>& things,
                       const std::vector<std::string>& names);
std::vector<std::string> things_of_line(std::string_view line);

// Sets drawn from topics: `topics` of ten words each and a few words that go with every topic; four
// to eight of a topic's words and up to two common ones make a set.
ItemSets generate_topics(int64_t sets, int64_t topics, uint64_t seed);

}  // namespace fovea::data
