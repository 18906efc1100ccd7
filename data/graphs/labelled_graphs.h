// Small graphs with kinds of nodes and labels on the edges, and a question about one node: one graph
// a line,
//
//   answer<TAB>node question<TAB>kind kind kind<TAB>from:label:to from:label:to
//
// Nodes are numbered from 0. A line without the answer asks for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

struct LabelledEdge {
  int64_t from = 0, to = 0;
  std::string label = {};
};

struct LabelledGraph {
  std::string answer = {};  // empty: unknown
  int64_t asked = 0;        // a node
  std::string question = {};
  std::vector<std::string> kinds = {};  // of each node
  std::vector<LabelledEdge> edges = {};
};

LabelledGraph parse_labelled_graph(std::string_view line, const std::string& path, size_t number);
// Every line has an answer.
std::vector<LabelledGraph> read_labelled_graphs(const std::string& path);
std::string labelled_graph_text(const LabelledGraph& graph);

}  // namespace fovea::data
