#include "systems/general/memories.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/files/file.h"
#include "data/files/json.h"
#include "data/random.h"
#include "train/types.h"

namespace fovea::systems::general {
namespace {

// A key is a random direction of length √kKey. If lengths differed, a dot product would prefer long
// keys.
void add_direction(std::vector<float>& keys, data::Random& random) {
  double direction[kKey], square = 0;
  for (double& c : direction) {
    c = random.normal();
    square += c * c;
  }
  for (const double c : direction) keys.push_back(static_cast<float>(c * std::sqrt(kKey / square)));
}

Json rows_of(const std::vector<float>& values, int64_t width) {
  Json rows = Json::array();
  for (auto at = values.begin(); at != values.end(); at += width)
    rows.push_back(std::vector<float>(at, at + width));
  return rows;
}

int64_t add_rows(const Json& item, const char* name, int64_t width, std::vector<float>& to,
                 const std::string& path, size_t line) {
  const auto expected =
      fmt::format("expected \"{}\" to be a list of rows of {} numbers of float32", name, width);
  const auto number = [](const Json& x) { return x.is_number() && std::isfinite(x.get<float>()); };
  if (!item.is_object() || !item.contains(name) || !item[name].is_array())
    throw data::FileError(path, line, expected);
  for (const Json& row : item[name]) {
    if (!row.is_array() || static_cast<int64_t>(row.size()) != width ||
        !std::all_of(row.begin(), row.end(), number))
      throw data::FileError(path, line, expected + ", found " + data::shown(row.dump()));
    for (const Json& x : row) to.push_back(x.get<float>());
  }
  return static_cast<int64_t>(item[name].size());
}

}  // namespace

bool sees(const std::string& structure, int64_t i, int64_t j) {
  constexpr int64_t kReach = 2;
  if (structure == "causal") return j <= i;
  return structure != "window" || std::abs(i - j) <= kReach;
}

data::Csr edges_of(const std::vector<const Memory*>& memories, const std::string& structure) {
  data::Csr out{.row_offsets = {0}, .columns = {}};
  int32_t first = 0;
  for (const Memory* memory : memories) {
    const auto pairs = static_cast<int64_t>(memory->keys.size()) / kKey;
    for (int64_t i = 0; i < static_cast<int64_t>(memory->asked.size()); ++i) {
      for (int64_t j = 0; j < pairs; ++j)
        if (sees(structure, i, j)) out.columns.push_back(first + static_cast<int32_t>(j));
      out.row_offsets.push_back(static_cast<int32_t>(out.columns.size()));
    }
    first += static_cast<int32_t>(pairs);
  }
  return out;
}

std::vector<Memory> generate(int64_t count, double noise, uint64_t seed) {
  std::vector<Memory> memories;
  data::Random random(seed);
  for (int64_t i = 0; i < count; ++i) {
    Memory memory;
    const auto pairs = static_cast<int64_t>(1 + random.below(16)),
               queries = static_cast<int64_t>(random.below(5));
    for (int64_t j = 0; j < pairs; ++j) add_direction(memory.keys, random);
    for (int64_t j = 0; j < pairs * kValue; ++j)
      memory.values.push_back(static_cast<float>(random.normal()));
    for (int64_t q = 0; q < queries; ++q) {
      memory.asked.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(pairs))));
      for (int64_t c = 0; c < kKey; ++c)
        memory.queries.push_back(memory.keys[static_cast<size_t>(memory.asked.back() * kKey + c)] +
                                 static_cast<float>(noise * random.normal()));
    }
    memories.push_back(std::move(memory));
  }
  return memories;
}

std::vector<Memory> read_memories(const std::string& path) {
  std::vector<Memory> memories;
  const std::string text = data::read_file(path);
  data::each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    const Json item = data::json_in(content);
    Memory memory;
    const int64_t pairs = add_rows(item, "keys", kKey, memory.keys, path, line),
                  values = add_rows(item, "values", kValue, memory.values, path, line),
                  queries = add_rows(item, "queries", kKey, memory.queries, path, line);
    const auto expect = [&](bool right, const std::string& what) {
      if (!right) throw data::FileError(path, line, what);
    };
    expect(
        pairs > 0 && values == pairs,
        fmt::format("{} values, expected {}, one for each key, and at least one", values, pairs));
    const Json asked = item.value("asked", Json());
    expect(asked.is_array() && static_cast<int64_t>(asked.size()) == queries,
           fmt::format("expected \"asked\" to list {} pairs, one for each query", queries));
    for (const Json& pair : asked) {
      expect(pair.is_number_unsigned() && pair.get<int64_t>() < pairs,
             fmt::format("asked: {}, expected 0 to {}", pair.dump(), pairs - 1));
      memory.asked.push_back(pair.get<int64_t>());
    }
    memories.push_back(std::move(memory));
  });
  return memories;
}

std::string json_line(const Memory& memory) {
  return Json{{"keys", rows_of(memory.keys, kKey)},
              {"values", rows_of(memory.values, kValue)},
              {"queries", rows_of(memory.queries, kKey)},
              {"asked", memory.asked}}
             .dump() +
         "\n";
}

}  // namespace fovea::systems::general
