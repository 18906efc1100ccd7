// Sets of tags, each beside numbers z that say more about what is tagged: photographs that are made up, or JSON Lines
// {"tags": ["sand", "sea"], "z": [0.8, 0.9, 0.1]}; z may be left out of all of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::systems::deep_sets {

struct TagSet {
  std::vector<std::string> tags = {};  // distinct
  std::vector<float> z = {};
};

// Photographs of five places in summer, in winter and at night. Most tags belong to a place; two of each set
// need both the place and the light, which is what z (warmth, brightness, whiteness) sees.
std::vector<TagSet> draw_tag_sets(int64_t count, uint64_t seed);

// FileError with the line's number where it is no such set.
TagSet parse_tag_set(std::string_view line, const std::string& path, size_t number);
// As many numbers z in each.
std::vector<TagSet> read_tag_sets(const std::string& path);
std::string json_line(const TagSet&);

}  // namespace fovea::systems::deep_sets
