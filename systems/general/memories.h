// Memories of key-value pairs, and queries that each ask for one of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::systems::general {

inline constexpr int64_t kKey = 8, kValue = 5;  // widths of keys and values

struct Memory {
  std::vector<float> keys, values, queries;  // m × kKey, m × kValue, n × kKey
  std::vector<int64_t> asked;                // for each query, the pair it asks for
};

std::vector<Memory> generate(int64_t count, double noise, uint64_t seed);
// JSON Lines {"keys", "values", "queries": lists of rows, "asked": for each query the number of
// its pair}.
std::vector<Memory> read_memories(const std::string& path);
// A memory as such a line.
std::string json_line(const Memory& memory);

}  // namespace fovea::systems::general
