#include "systems/deep_sets/tag_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "data/count_of.h"
#include "data/files/file.h"
#include "data/files/json.h"
#include "data/random.h"

namespace fovea::systems::deep_sets {
namespace {

using Names = std::vector<std::string>;

struct Place {
  Names tags;
  std::array<Names, 3> in_light;  // summer, winter, night
};

const std::vector<Place>& places() {
  static const std::vector<Place> all = {
      {{"sand", "sea", "shells", "pier"},
       {{{"parasol", "ice cream"}, {"gulls", "storm"}, {"lighthouse", "campfire"}}}},
      {{"trees", "path", "moss", "hut"},
       {{{"berries", "hikers"}, {"sledge", "bare branches"}, {"owl", "torch"}}}},
      {{"houses", "street", "tram", "square"},
       {{{"café tables", "cyclists"}, {"snowplough", "scarf"}, {"street lamps", "neon sign"}}}},
      {{"boat", "shore", "reeds", "jetty"},
       {{{"swimmers", "dragonfly"}, {"ice skaters", "hot tea"}, {"moonlight", "frogs"}}}},
      {{"rocks", "peak", "meadow", "cable car"},
       {{{"cows", "flowers"}, {"skiers", "avalanche fence"}, {"stars", "tent"}}}},
  };
  return all;
}

// Warmth, brightness, whiteness of summer, winter and night.
constexpr std::array<std::array<double, 3>, 3> kLight = {
    {{0.8, 0.9, 0.1}, {0.1, 0.6, 0.9}, {0.3, 0.1, 0.1}}};
constexpr double kNoise = 0.1, kKept = 0.9;

bool is_number(const data::Json& value) {
  return value.is_number() && std::isfinite(value.get<float>());
}

}  // namespace

std::vector<TagSet> draw_tag_sets(int64_t count, uint64_t seed) {
  data::Random random(seed);
  std::vector<TagSet> out;
  while (static_cast<int64_t>(out.size()) < count) {
    const Place& place = random.choice(places());
    const size_t light = random.below(kLight.size());
    TagSet set;
    for (const Names* names : {&place.tags, &place.in_light[light]})
      for (const std::string& tag : *names)
        if (random.uniform() < kKept) set.tags.push_back(tag);
    random.shuffle(set.tags);
    for (const double mean : kLight[light])
      set.z.push_back(static_cast<float>(mean + kNoise * random.normal()));
    if (set.tags.size() >= 3) out.push_back(std::move(set));
  }
  return out;
}

TagSet parse_tag_set(std::string_view line, const std::string& path, size_t number) {
  const data::Json item = data::json_in(line);
  const auto refuse = [&] {
    throw data::FileError(
        path, number,
        fmt::format("expected {{\"tags\": [\"…\", …], \"z\": [numbers]}}, found {}",
                    data::shown(line)));
  };
  if (!item.is_object() || !item.contains("tags") || !item["tags"].is_array()) refuse();
  TagSet set;
  std::set<std::string> seen;
  for (const data::Json& tag : item["tags"]) {
    if (!tag.is_string() || tag.get_ref<const std::string&>().empty()) refuse();
    if (seen.insert(tag.get<std::string>()).second) set.tags.push_back(tag.get<std::string>());
  }
  if (!item.contains("z")) return set;
  const data::Json& z = item["z"];
  if (!z.is_array() || !std::all_of(z.begin(), z.end(), is_number)) refuse();
  for (const data::Json& one : z) set.z.push_back(one.get<float>());
  return set;
}

std::vector<TagSet> read_tag_sets(const std::string& path) {
  std::vector<TagSet> out;
  const std::string text = data::read_file(path);
  data::each_line(std::string_view(text), path, [&](size_t number, std::string_view line) {
    if (data::trimmed(line).empty()) return;
    TagSet set = parse_tag_set(line, path, number);
    if (set.tags.size() < 2)
      throw data::FileError(path, number,
                            data::count_of(set.tags.size(), "tag",
                                           ", expected at least 2: some are given, others found"));
    if (!out.empty() && set.z.size() != out[0].z.size())
      throw data::FileError(
          path, number,
          data::count_of(set.z.size(), "number",
                         fmt::format(" z, expected {} as in the first line", out[0].z.size())));
    out.push_back(std::move(set));
  });
  if (out.empty()) throw data::FileError(path, 0, "no sets of tags, expected at least one line");
  return out;
}

std::string json_line(const TagSet& set) {
  data::Json line = {{"tags", set.tags}};
  if (!set.z.empty()) line["z"] = set.z;
  return line.dump();
}

}  // namespace fovea::systems::deep_sets
