// A generated citation graph in which the useful neighbours are known: papers cite papers of their
// own field, and surveys, which cite all fields.
#pragma once

#include <cstdint>
#include <vector>

#include "data/formats/graph.h"

namespace fovea::data {

struct GraphPlan {
  int64_t nodes = 1500;
  int64_t edges = 0;       // about; 0: seven for each node
  int64_t features = 240;  // words
  int64_t classes = 5;
  int64_t reach = 0;      // how far from its own number a node cites; 0: any node
  int64_t labelled = 20;  // training nodes of each class
  uint64_t seed = 1;
};

struct GeneratedGraph {
  CitationGraph graph;
  std::vector<uint8_t>
      survey;  // of each node: whether it is a survey, which says nothing about a field; unlabelled
};

// A paper has few words of its field among many common ones, so that its neighbours must help; half
// of its edges go to surveys, whose words are of all fields.
GeneratedGraph generate_graph(const GraphPlan&);

}  // namespace fovea::data
