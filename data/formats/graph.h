// Graphs: the Planetoid text folder, or a table of nodes with an edge list.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/split.h"

namespace fovea::data {

// Row i is a list of node i, ascending, each number once. Of a graph: the nodes that it sees, itself
// among them.
struct Csr {
  std::vector<int32_t> row_offsets, columns;
};
inline std::span<const int32_t> row_of(const Csr& rows, size_t node) {
  const auto first = static_cast<size_t>(rows.row_offsets[node]),
             end = static_cast<size_t>(rows.row_offsets[node + 1]);
  return std::span(rows.columns).subspan(first, end - first);
}
// How many nodes a node sees.
inline int64_t degree(const Csr& sees, int64_t node) {
  return sees.row_offsets[static_cast<size_t>(node) + 1] -
         sees.row_offsets[static_cast<size_t>(node)];
}

struct CitationGraph {
  int64_t nodes = 0, features = 0, classes = 0;
  std::vector<std::pair<int32_t, int32_t>> edges;  // as in the file
  Csr words;                    // of each node: the features that are 1; no rows: `values` has them
  std::vector<float> values;    // [nodes, features]
  std::vector<int64_t> labels;  // -1: unlabelled
  std::vector<std::string> names, class_names;  // empty: their numbers
  std::vector<std::string> feature_names;       // the columns of `values`; empty: unknown
  std::vector<std::string> left_out;            // columns of words, which are no features
  std::vector<std::string> edge_columns;        // what edges.csv has beside two ends; not read
  Splits splits;

  bool has_words() const { return !words.row_offsets.empty(); }
};

// The folder of `meta.txt`, `edges.txt`, `features.txt`, `labels.txt` and the three split files.
CitationGraph read_planetoid(const std::string& folder);
// That folder of a graph whose features are words: name -> text.
std::map<std::string, std::string> planetoid_files(const CitationGraph&);

// A graph of the user's own: a folder with `nodes.csv` and `edges.csv` (or `edges.txt`). nodes.csv has
// columns `id` (any text; without the column a node's number, from 0), `label` (empty: unlabelled),
// `split` (train, validation, test; without the column the caller draws one), and numbers for each
// feature. An edge is a line of two ids, quoted or not, with a comma, a semicolon, a tab or blanks
// between them. A first line is a header if neither end is a node or a number. What such a header names
// beside the two ends is not read.
CitationGraph read_node_table(const std::string& folder);

// Either of the two, by what the folder holds. The `ind.*` files of Planetoid are Python pickles:
// refused, naming the text folder.
CitationGraph read_graph(const std::string& folder);

// Both directions of each edge and a self-loop for each node; duplicates and given self-loops count
// once. An end outside 0 … nodes - 1 is refused.
Csr symmetric_with_loops(int64_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges);

// The same with the directions given: an edge u v lets u see v, and not v u; u is the query.
Csr directed_with_loops(int64_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges);

// `u v` a line (also comma or tab), 0-based.
std::vector<std::pair<int32_t, int32_t>> read_edges(const std::string& path, int64_t nodes);

}  // namespace fovea::data
