// Memories of key-value pairs, and queries that each ask for one of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/graph.h"

namespace fovea::systems::general {

inline constexpr int64_t kKey = 8, kValue = 5;  // widths of keys and values

struct Memory {
  std::vector<float> keys, values, queries;  // m × kKey, m × kValue, n × kKey
  std::vector<int64_t> asked;                // for each query, the pair it asks for
};

std::vector<Memory> generate(int64_t count, double noise, uint64_t seed);
// Whether query i may see pair j: "all"; "causal", pairs up to its own place; "window", pairs at
// most two places from it.
bool sees(const std::string& structure, int64_t i, int64_t j);
// The same for a batch, queries and pairs counted through it.
data::Csr edges_of(const std::vector<const Memory*>& memories, const std::string& structure);
// JSON Lines {"keys", "values", "queries": lists of rows, "asked": for each query the number of
// its pair}.
std::vector<Memory> read_memories(const std::string& path);
// A memory as such a line.
std::string json_line(const Memory& memory);

}  // namespace fovea::systems::general
