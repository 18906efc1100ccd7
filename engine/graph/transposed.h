// A graph seen from its keys: the edges of each, in ascending order of rows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/graph/graph.h"

namespace fovea::engine {

struct Transposed {
  explicit Transposed(const GraphView& graph)
      : offsets(graph.keys + 1, 0), rows(graph.edges), edges(graph.edges), place(graph.edges) {
    for (size_t e = 0; e < graph.edges; ++e) ++offsets[static_cast<size_t>(graph.columns[e]) + 1];
    for (size_t j = 0; j < graph.keys; ++j) offsets[j + 1] += offsets[j];
    std::vector<size_t> at(offsets.begin(), offsets.end() - 1);
    for (size_t i = 0; i < graph.rows; ++i) {
      for (size_t e = graph.begin(i); e < graph.begin(i) + graph.degree(i); ++e) {
        const size_t to = at[static_cast<size_t>(graph.columns[e])]++;
        rows[to] = static_cast<int32_t>(i);
        edges[to] = static_cast<int32_t>(e);
        place[e] = static_cast<int32_t>(to);
      }
    }
  }
  std::vector<size_t> offsets;       // [keys + 1]
  std::vector<int32_t> rows, edges;  // of each transposed edge
  std::vector<int32_t> place;        // where each edge went
};

// Every step of a training has the same graph. Its transpose is kept with a copy of the graph, and
// found again by comparing the two, which takes a fraction of the time of transposing. The last few
// graphs are kept, of at most kTransposedEdges edges each.
inline constexpr size_t kTransposedKept = 4, kTransposedEdges = size_t{4} << 20;
std::shared_ptr<const Transposed> transposed_of(const GraphView& graph);

}  // namespace fovea::engine
