// The weights of a node's neighbours: ego graphs with a colour for each head, and the entropy of the
// weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/graph.h"
#include "explain/explanation.h"
#include "systems/gat/model.h"

namespace fovea::systems::gat {

struct Shown {
  Model& model;
  const GraphInput& input;
  const data::CitationGraph& graph;
  const data::Csr& sees;
  std::vector<int64_t> nodes;      // whose neighbourhoods are drawn
  std::vector<uint8_t> look_past;  // of each node: 1 if it misleads; empty: not known
  bool dynamic = false;
};

std::string name_of_node(const data::CitationGraph& graph, int64_t node);
std::string name_of_class(const data::CitationGraph& graph, int64_t label);
// The node that a line of a file names, by its id, or by its number if nodes have no ids.
int64_t node_named(const data::CitationGraph& graph, const std::string& word,
                   const std::string& name, size_t line);

// The names of nodes in a line: the whole line if a node has that name, else its words.
std::vector<std::string> names_in(const data::CitationGraph& graph, std::string_view line);

// Test nodes with few enough neighbours to draw. First those that see nodes of both kinds, such as
// papers and surveys: the page is about that choice.
std::vector<int64_t> nodes_worth_drawing(const data::Csr& sees, const std::vector<int64_t>& test,
                                         const std::vector<uint8_t>& look_past);

// The same nodes, the most telling first: of generated papers those that are told right and look past
// surveys, of other graphs the mistakes.
std::vector<int64_t> telling_first(const Shown& shown);

// One for each layer.
std::vector<explain::Explanation> pictures(const Shown& shown);

}  // namespace fovea::systems::gat
