// Graphs: the Planetoid text folder, or a plain edge list.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/split.h"

namespace fovea::data {

// Row i lists the nodes that node i sees: neighbours both ways and itself, ascending, each once.
struct Csr {
  std::vector<int32_t> row_offsets, columns;
};

struct CitationGraph {
  int64_t nodes = 0, features = 0, classes = 0;
  std::vector<std::pair<int32_t, int32_t>> edges;   // as in the file
  std::vector<std::vector<int32_t>> words;          // of each node: the features that are 1, ascending
  std::vector<int64_t> labels;                      // -1: unlabelled
  Splits splits;
};

// The folder of `meta.txt`, `edges.txt`, `features.txt`, `labels.txt` and the three split files.
CitationGraph read_planetoid(const std::string& folder);

// Both directions of each edge and a self-loop for each node; duplicates and given self-loops count once. An end outside
// 0 … nodes - 1 is refused.
Csr symmetric_with_loops(int64_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges);

// `u v` a line (also comma or tab), 0-based.
std::vector<std::pair<int32_t, int32_t>> read_edges(const std::string& path, int64_t nodes);

}  // namespace fovea::data
