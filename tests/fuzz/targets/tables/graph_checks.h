// What every graph that was read must be.
#pragma once

#include <algorithm>

#include "data/formats/graph.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {

inline void check_graph(const data::CitationGraph& graph) {
  const auto nodes = static_cast<size_t>(graph.nodes);
  require(graph.labels.size() == nodes, "every node has a label");
  for (const int64_t label : graph.labels)
    require(label >= -1 && label < graph.classes, "labels are classes");
  require(graph.words.row_offsets.size() == nodes + 1 ||
              graph.values.size() == nodes * static_cast<size_t>(graph.features),
          "every node has features");
  const data::Csr csr = data::symmetric_with_loops(graph.nodes, graph.edges);
  require(csr.row_offsets.size() == nodes + 1 &&
              csr.columns.size() == static_cast<size_t>(csr.row_offsets.back()),
          "rows cover the columns");
  for (const int32_t column : csr.columns)
    require(column >= 0 && column < graph.nodes, "columns are nodes");
  require(data::directed_with_loops(graph.nodes, graph.edges).columns.size() <= csr.columns.size(),
          "one direction has no more edges than both");
}

}  // namespace fovea::fuzz
